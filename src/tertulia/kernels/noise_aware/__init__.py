"""The entry points of noise-aware LDA on private reports, on plain arrays: `init`, `run` and `topic_word`.

Reports are given whole, or as a function of (first, last) that regenerates those of tokens first..last-1 whenever they
are needed: Laplace reports of a large corpus do not fit in memory. All randomness of the model is a pure function of
`key`; neither blocks nor threads change a bit. A state is never changed in place.

    source = functools.partial(reports, words, channel, secret, corpus_id)
    state = init(source, documents, V=3_000, K=20, alpha=0.1, beta=0.1, key=7)
    state, _ = run(source, documents, state, sweeps=100, key=8, threads=2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import check_alpha, check_size, check_topics
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.options import NEVER, Learning, Phi, SweepInfo, check_options
from tertulia.kernels.lda.phi import NO_TOTALS
from tertulia.kernels.noise_aware import mh, warp
from tertulia.kernels.noise_aware.gibbs import sweep_collapsed, sweep_given_phi
from tertulia.kernels.noise_aware.state import (
    AwareState,
    check_prior,
    count_state,
    current_phi,
    empty_state,
    fit_priors,
    spread,
)
from tertulia.kernels.reports import Reports

__all__ = ["SAMPLERS", "AwareState", "Source", "init", "init_from_topics", "run", "topic_word"]
Source = Reports | Callable[[int, int], Reports]
Sampler = Literal["dense", "gibbs", "mh", "warp"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
SWEEP, PHI = 0, 1  # labels of the random streams within a sweep
INIT = 2**63  # no sweep has this number
_BLOCK = 4096  # tokens whose reports are regenerated at a time
FLAT = 1e6  # an alpha so large that topics are uniform


def init(
    source: Source, documents: Array, V: int, K: int, alpha: float | Array, beta: float | Array, key: int
) -> AwareState:
    """Make a state with every topic uniform and every word as likely as its report makes it."""
    check_size(V, K)
    uniform = np.zeros((V, padded_width(K)), dtype=np.float32)
    uniform[:, :K] = 1 / V
    flat, prior = np.full(K, FLAT), check_alpha(alpha, K)
    return _draw_state(source, documents, uniform, flat, prior, check_prior(beta, V), key)


def init_from_topics(
    source: Source, documents: Array, topic_word: Array, alpha: float | Array, beta: float | Array, key: int
) -> AwareState:
    """Draw a state from given topics [K, V], token after token (after FTM, algorithm 1, lines 9-10)."""
    topic_word = check_topics(topic_word)
    K, V = topic_word.shape
    alpha = check_alpha(alpha, K)
    return _draw_state(source, documents, spread(topic_word), alpha, alpha, check_prior(beta, V), key)


def run(
    source: Source,
    documents: Array,
    state: AwareState,
    sweeps: int,
    key: int,
    sampler: Sampler = "dense",
    learning: Learning = NEVER,
    threads: int = 1,
    phi: Phi = "draw",
    refresh: int = 4,
    others: I32 | None = None,
) -> tuple[AwareState, SweepInfo]:
    """Sweep over all tokens `sweeps` times and return the new state.

    `gibbs` is collapsed Gibbs, the reference; `dense` is partially collapsed and parallel; `mh` is Metropolis-Hastings
    in constant time per token, for reports of one word, with word tables rebuilt every `refresh` sweeps. With
    `phi="draw"` these three target the exact posterior. `warp`, for the same reports, is faster than `mh`, and
    approximate. Priors are learned as in `lda.run`, beta only if it is one number. `others` [V, K] are counts of tokens
    elsewhere that share the topics and stand still meanwhile (not with `gibbs` and `warp`).
    """
    check_options(sampler, SAMPLERS, phi, sweeps, threads, learning)
    if refresh < 1:
        raise InputError(f"refresh = {refresh}: it must be at least 1")
    if others is not None and others.shape != state.cwk.shape:
        raise InputError(f"others has shape {others.shape}, but the state is of {state.cwk.shape} words and topics")
    documents = check_offsets(source, documents)
    state = count_state(*_check_assignment(state, int(documents[-1])), state)
    if sampler == "warp":
        return _run_by_words(_whole(source, documents), documents, state, sweeps, key, learning, threads)
    changed, tables, whole = 0, None, _whole(source, documents) if sampler == "mh" else None
    for s in range(sweeps):
        stream = derive(key, s)
        if sampler == "gibbs":
            changed = _gibbs_sweep(source, documents, state, derive(stream, SWEEP))
        else:
            fixed, totals = current_phi(state, others, phi, derive(stream, PHI), threads)
            if whole is not None and (tables is None or s % refresh == 0):
                tables = mh.build_tables(fixed, state.ck.shape[0], threads, state.z, totals)
            own = derive(stream, SWEEP)
            state, changed = _sweep(whole or source, documents, state, fixed, totals, tables, own, threads)
        if learning.is_due(s):
            state = _fit_to_signals(documents, state, learning)
    return state, SweepInfo(changed, math.nan)


def topic_word(state: AwareState) -> F64:
    """Compute the posterior mean of Phi given the state, [K, V]."""
    beta = np.broadcast_to(state.beta, state.cwk.shape[:1])
    return np.ascontiguousarray((state.cwk.T + beta) / (state.ck[:, None] + beta.sum()))


def _draw_state(
    source: Source, documents: Array, phi: F32, alpha: F64, prior: F64, beta: float | F64, key: int
) -> AwareState:
    documents = check_offsets(source, documents)
    nothing = np.full(int(documents[-1]), -1, dtype=np.int32)
    empty = empty_state(nothing, nothing.copy(), phi.shape[0], alpha, beta)
    state, _ = _sweep(source, documents, empty, phi, NO_TOTALS, None, derive(key, INIT), 1)
    return state._replace(alpha=prior)


def _gibbs_sweep(source: Source, documents: I64, state: AwareState, key: np.uint64) -> int:
    z, word, cwk, ck, alpha, beta = state
    beta = np.array(np.broadcast_to(beta, cwk.shape[:1]))
    return sum(
        sweep_collapsed(r.indptr, r.idx, r.a, r.r0, base, documents, first, last, z, word, cwk, ck, alpha, beta, key)
        for base, r, first, last in pieces(source, documents, 0, len(documents) - 1)
    )


def _run_by_words(
    reports: Reports, documents: I64, state: AwareState, sweeps: int, key: int, learning: Learning, threads: int
) -> tuple[AwareState, SweepInfo]:  # fmt: skip
    """Sweep by `warp`, in stretches between which priors are learned."""
    changed = 0
    ratio = (float(reports.a[0]) if len(reports.a) else 1.0, reports.r0)
    for numbers in learning.stretches(sweeps):
        streams = [derive(key, s) for s in numbers]
        beta = np.array(np.broadcast_to(state.beta, state.cwk.shape[:1]))
        z, changed = warp.stretch(reports.idx, ratio, documents, state.z, state.alpha, beta, streams, threads)
        state = count_state(z, np.where(z < 0, np.int32(-1), reports.idx), state)
        if learning.is_due(numbers[-1]):
            state = _fit_to_signals(documents, state, learning)
    return state, SweepInfo(changed, math.nan)


def _sweep(
    source: Source, documents: I64, state: AwareState, phi: F32, totals: F64, tables: mh.Tables | None, key: np.uint64,
    threads: int,
) -> tuple[AwareState, int]:  # fmt: skip
    """Redraw all tokens given phi: by Metropolis-Hastings if there are tables, else by Gibbs."""
    z, word, alpha = state.z, state.word, state.alpha

    def redraw(r: Reports, base: int, first: int, last: int, cwk: I32) -> int:
        if tables is not None:
            return mh.sweep(r, base, documents, first, last, z, word, phi, totals, tables, alpha, cwk, key)
        reports = r.indptr, r.idx, r.a, r.r0, base
        return sweep_given_phi(*reports, documents, first, last, z, word, phi, totals, alpha, cwk, key)

    return sweep_blocks(source, documents, state, redraw, threads)


def sweep_blocks(
    source: Source, documents: I64, state: AwareState, redraw: Callable[[Reports, int, int, int, I32], int],
    threads: int,
) -> tuple[AwareState, int]:  # fmt: skip
    """Let `redraw` change the topics and words of some documents in place and count them, until all are done."""
    ranges = parallel.cuts(documents, threads) or [(0, 0)]
    counts = [np.zeros(state.cwk.shape, dtype=np.int32) for _ in ranges]

    def work(first: int, last: int, cwk: I32) -> int:
        return sum(redraw(r, base, a, b, cwk) for base, r, a, b in pieces(source, documents, first, last))

    jobs = [(first, last, cwk) for (first, last), cwk in zip(ranges, counts, strict=True)]
    changed = sum(parallel.run(work, jobs, threads))
    cwk = counts[0]
    for other in counts[1:]:
        cwk += other
    return state._replace(cwk=cwk, ck=cwk.sum(axis=0, dtype=np.int64)), changed


def pieces(source: Source, documents: I64, first: int, last: int) -> Iterator[tuple[int, Reports, int, int]]:
    """Yield the reports of documents first..last-1 in blocks: (their first token, reports, first, last)."""
    if isinstance(source, Reports):
        yield 0, source, first, last
        return
    parts = max(1, int(documents[last] - documents[first]) // _BLOCK)
    for a, b in parallel.cuts(documents[first : last + 1], parts):
        start, stop = int(documents[first + a]), int(documents[first + b])
        yield start, source(start, stop), first + a, first + b


def _whole(source: Source, documents: I64) -> Reports:
    reports = source if isinstance(source, Reports) else source(0, int(documents[-1]))
    one_word_each = np.array_equal(reports.indptr, np.arange(len(reports.indptr)))
    if not one_word_each or np.any(reports.a != reports.a[:1]) or reports.r0 <= 0:
        raise InputError("samplers mh and warp need reports of one word each, as of channel krr: choose dense or gibbs")
    return reports


def _fit_to_signals(documents: I64, state: AwareState, learning: Learning) -> AwareState:
    """Fit the priors; background tokens are left out."""
    signal = state.z >= 0
    return fit_priors(np.concatenate([[0], np.cumsum(signal)])[documents], state.z[signal], state, learning)


def check_offsets(source: Source, documents: Array) -> I64:
    """Check that document offsets [D+1] fit the reports; return them frozen."""
    documents = np.asarray(documents)
    if documents.ndim != 1 or len(documents) == 0 or documents[0] != 0 or np.any(documents[1:] < documents[:-1]):
        raise InputError("documents must rise from 0 to the number of tokens, and never fall")
    if isinstance(source, Reports) and len(source.indptr) != documents[-1] + 1:
        raise InputError(f"{len(source.indptr) - 1} reports for {documents[-1]} tokens: are they another corpus's?")
    return freeze(documents, np.int64)


def _check_assignment(state: AwareState, n: int) -> tuple[I32, I32]:
    """Check topics and words; return copies."""
    V, K = state.cwk.shape
    for name, x, stop in (("z", state.z, K), ("word", state.word, V)):
        if x.shape != (n,) or (n and not -1 <= x.min() <= x.max() < stop):
            raise InputError(f"{name}, shape {x.shape}, must be within -1..{stop - 1} for {n} tokens: another state?")
    if np.any((state.z < 0) != (state.word < 0)):
        raise InputError("a token without a topic must be one without a word: the state is damaged")
    return np.array(state.z, dtype=np.int32), np.array(state.word, dtype=np.int32)
