"""The front door of noise-aware LDA on private reports: `init`, `run` and `topic_word` on plain arrays.

Reports are given whole, or as a function of (first, last) that regenerates those of tokens first..last-1 whenever they
are needed: Laplace reports of a large corpus do not fit in memory. All randomness of the model is a pure function of
`key`; neither blocks nor threads change a bit. A state is never changed in place.

>>> source = functools.partial(reports, words, channel, secret, corpus_id)
>>> state = init(source, documents, V=3_000, K=20, alpha=0.1, beta=0.1, key=7)
>>> state, _ = run(source, documents, state, sweeps=100, key=8, threads=2)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import checked_alpha, checked_beta, checked_size, checked_topics
from tertulia.kernels.core.jit import frozen, kernel
from tertulia.kernels.core.rng import bits, derive, gamma
from tertulia.kernels.core.simd import padded
from tertulia.kernels.lda import LearnAlpha, Phi, SweepInfo, priors
from tertulia.kernels.lda.phi import draw_phi, mean_phi
from tertulia.kernels.noise_aware import mh, warp
from tertulia.kernels.noise_aware.gibbs import collapsed, given_phi
from tertulia.kernels.reports import Reports

Source = Reports | Callable[[int, int], Reports]
Sampler = Literal["dense", "gibbs", "mh", "warp"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
SWEEP, PHI = 0, 1  # labels of the random streams within a sweep
INIT = 2**63  # no sweep has this number
_BLOCK = 4096  # tokens whose reports are regenerated at a time
FLAT = 1e6  # an alpha so large that topics are uniform


class AwareState(NamedTuple):
    """Where a chain is. A background token, whose report is taken for noise, has topic and word -1."""

    z: I32  # [N] topic of each token
    word: I32  # [N] word each token is taken to have, one that its report names
    cwk: I32  # [V, K] tokens of word w in topic k, background tokens left out
    ck: I64  # [K]
    alpha: F64  # [K]
    beta: float | F64  # the prior of words, one number or [V]


def init(
    source: Source, documents: Array, V: int, K: int, alpha: float | Array, beta: float | Array, key: int
) -> AwareState:
    """A state with every topic uniform and every word as likely as its report makes it."""
    checked_size(V, K)
    uniform = np.zeros((V, padded(K)), dtype=np.float32)
    uniform[:, :K] = 1 / V
    return _drawn(source, documents, uniform, np.full(K, FLAT), checked_alpha(alpha, K), checked_prior(beta, V), key)


def init_from_topics(
    source: Source, documents: Array, topic_word: Array, alpha: float | Array, beta: float | Array, key: int
) -> AwareState:
    """A state drawn from given topics [K, V], token after token (after FTM, algorithm 1, lines 9-10)."""
    topic_word = checked_topics(topic_word)
    K, V = topic_word.shape
    alpha = checked_alpha(alpha, K)
    return _drawn(source, documents, spread(topic_word), alpha, alpha, checked_prior(beta, V), key)


def spread(topic_word: Array) -> F32:
    """Topics [K, V] as samplers want them, [V, padded K], every topic of mass 1."""
    K, V = topic_word.shape
    phi = np.zeros((V, padded(K)), dtype=np.float32)
    phi[:, :K] = (topic_word / np.maximum(topic_word.sum(axis=1, keepdims=True), np.finfo(float).tiny)).T
    return phi


def run(
    source: Source,
    documents: Array,
    state: AwareState,
    sweeps: int,
    key: int,
    sampler: Sampler = "dense",
    learn_alpha: LearnAlpha = False,
    learn_beta: bool = False,
    learn_every: int = 10,
    threads: int = 1,
    phi: Phi = "draw",
    refresh: int = 4,
    others: I32 | None = None,
) -> tuple[AwareState, SweepInfo]:
    """Sweep over all tokens `sweeps` times and return the new state.

    `gibbs` is collapsed Gibbs, the reference; `dense` is partially collapsed and parallel; `mh` is Metropolis-Hastings
    in constant time a token, for reports of one word, with word tables rebuilt every `refresh` sweeps. With
    `phi="draw"` these target the exact posterior. `warp`, for the same reports, is faster than `mh`, and approximate.
    Priors are learned as in `lda.run`, beta only if it is one number. `others` [V, K] are counts of tokens elsewhere
    that share the topics and stand still meanwhile (not with `gibbs` and `warp`).
    """
    if sampler not in SAMPLERS or phi not in ("draw", "mean"):
        raise InputError(f"sampler = {sampler!r}, phi = {phi!r}: choose {', '.join(SAMPLERS)}, and draw or mean")
    if sweeps < 0 or min(threads, learn_every, refresh) < 1:
        raise InputError(f"{sweeps=}, {threads=}, {learn_every=}, {refresh=}: too small")
    documents = checked_documents(source, documents)
    state = counted(*_checked_assignment(state, int(documents[-1])), state)
    if sampler == "warp":
        learning = (learn_alpha, learn_beta, learn_every)
        return _by_words(_whole(source, documents), documents, state, sweeps, key, learning, threads)
    changed, tables, whole = 0, None, _whole(source, documents) if sampler == "mh" else None
    for s in range(sweeps):
        stream = derive(key, s)
        if sampler == "gibbs":
            changed = _gibbs_sweep(source, documents, state, derive(stream, SWEEP))
        else:
            fixed = phi_given(state, others, phi, derive(stream, PHI), threads)
            if whole is not None and (tables is None or s % refresh == 0):
                tables = mh.build_tables(fixed, state.ck.shape[0], threads)
            state, changed = _sweep(whole or source, documents, state, fixed, tables, derive(stream, SWEEP), threads)
        if (s + 1) % learn_every == 0:
            state = _learned(documents, state, learn_alpha, learn_beta)
    return state, SweepInfo(changed, math.nan)


def topic_word(state: AwareState) -> F64:
    """The posterior mean of Phi given the state, [K, V]."""
    beta = np.broadcast_to(state.beta, state.cwk.shape[:1])
    return np.ascontiguousarray((state.cwk.T + beta) / (state.ck[:, None] + beta.sum()))


def _drawn(
    source: Source, documents: Array, phi: F32, alpha: F64, prior: F64, beta: float | F64, key: int
) -> AwareState:
    documents = checked_documents(source, documents)
    nothing = np.full(int(documents[-1]), -1, dtype=np.int32)
    V, K = phi.shape[0], len(alpha)
    empty = AwareState(
        nothing, nothing.copy(), np.zeros((V, K), dtype=np.int32), np.zeros(K, dtype=np.int64), alpha, beta
    )
    state, _ = _sweep(source, documents, empty, phi, None, derive(key, INIT), 1)
    return state._replace(alpha=prior)


def _gibbs_sweep(source: Source, documents: I64, state: AwareState, key: np.uint64) -> int:
    z, word, cwk, ck, alpha, beta = state
    beta = np.array(np.broadcast_to(beta, cwk.shape[:1]))
    return sum(
        collapsed(r.indptr, r.idx, r.a, r.r0, base, documents, first, last, z, word, cwk, ck, alpha, beta, key)
        for base, r, first, last in pieces(source, documents, 0, len(documents) - 1)
    )


def _by_words(
    reports: Reports, documents: I64, state: AwareState, sweeps: int, key: int, learning: tuple[LearnAlpha, bool, int],
    threads: int,
) -> tuple[AwareState, SweepInfo]:  # fmt: skip
    """Sweeps of `warp`, in stretches between which priors are learned."""
    changed, (learn_alpha, learn_beta, every) = 0, learning
    ratio = (float(reports.a[0]) if len(reports.a) else 1.0, reports.r0)
    for s in range(0, sweeps, every):
        streams = [derive(key, t) for t in range(s, min(s + every, sweeps))]
        beta = np.array(np.broadcast_to(state.beta, state.cwk.shape[:1]))
        z, changed = warp.stretch(reports.idx, ratio, documents, state.z, state.alpha, beta, streams, threads)
        state = counted(z, np.where(z < 0, np.int32(-1), reports.idx), state)
        if len(streams) == every:
            state = _learned(documents, state, learn_alpha, learn_beta)
    return state, SweepInfo(changed, math.nan)


def _sweep(
    source: Source, documents: I64, state: AwareState, phi: F32, tables: mh.Tables | None, key: np.uint64,
    threads: int,
) -> tuple[AwareState, int]:  # fmt: skip
    """All tokens given phi: by Metropolis-Hastings if there are tables, else by Gibbs."""
    z, word, alpha = state.z, state.word, state.alpha

    def redraw(r: Reports, base: int, first: int, last: int, cwk: I32) -> int:
        if tables is not None:
            return mh.sweep(r, base, documents, first, last, z, word, phi, tables, alpha, cwk, key)
        return given_phi(r.indptr, r.idx, r.a, r.r0, base, documents, first, last, z, word, phi, alpha, cwk, key)

    return swept(source, documents, state, redraw, threads)


def swept(
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
    """The reports of documents first..last-1 in manageable parts: (their first token, reports, first, last)."""
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


def phi_given(state: AwareState, others: I32 | None, how: Phi, key: np.uint64, threads: int) -> F32:
    """Phi [V, padded K] for a sweep: drawn from its posterior, or the mean of it."""
    _, _, cwk, ck, _, beta = state
    if others is not None:
        cwk = cwk + others
        ck = cwk.sum(axis=0, dtype=np.int64)
    if isinstance(beta, float):
        return draw_phi(cwk, ck, beta, key, threads) if how == "draw" else mean_phi(cwk, ck, beta)
    phi = np.zeros((cwk.shape[0], padded(cwk.shape[1])), dtype=np.float32)
    if how == "draw":
        _draw_rows(cwk, beta, key, phi)
    else:
        phi[:, : cwk.shape[1]] = cwk + beta[:, None]
    phi[:, : cwk.shape[1]] /= phi[:, : cwk.shape[1]].sum(axis=0, dtype=np.float64)
    return phi


def _learned(documents: I64, state: AwareState, alpha: LearnAlpha, beta: bool) -> AwareState:
    if alpha:
        signal = state.z >= 0
        offsets = np.concatenate([[0], np.cumsum(signal)])[documents]  # background tokens left out
        learned = priors.learn_alpha(offsets, state.z[signal], state.alpha, symmetric=alpha == "symmetric")
        state = state._replace(alpha=learned)
    if beta and isinstance(state.beta, float):
        state = state._replace(beta=priors.learn_beta(state.cwk, state.ck, state.beta))
    return state


def checked_prior(beta: float | Array, V: int) -> float | F64:
    """The prior of words, one number or [V]; of the latter the sum must be 1 at least, or draws could all be 0."""
    if np.ndim(beta) == 0:
        return checked_beta(float(beta))
    prior = np.array(beta, dtype=np.float64)
    if prior.shape != (V,) or not (np.all(np.isfinite(prior)) and np.all(prior > 0) and prior.sum() >= 1):
        raise InputError(f"beta has shape {prior.shape}: give a positive number for each of the {V} words, 1 in sum")
    return prior


def checked_documents(source: Source, documents: Array) -> I64:
    """Document offsets [D+1], frozen; they must fit the reports."""
    documents = np.asarray(documents)
    if documents.ndim != 1 or len(documents) == 0 or documents[0] != 0 or np.any(documents[1:] < documents[:-1]):
        raise InputError("documents must rise from 0 to the number of tokens, and never fall")
    if isinstance(source, Reports) and len(source.indptr) != documents[-1] + 1:
        raise InputError(f"{len(source.indptr) - 1} reports for {documents[-1]} tokens: are they another corpus's?")
    return frozen(documents, np.int64)


def _checked_assignment(state: AwareState, n: int) -> tuple[I32, I32]:
    """Copies of topics and words."""
    V, K = state.cwk.shape
    for name, x, stop in (("z", state.z, K), ("word", state.word, V)):
        if x.shape != (n,) or (n and not -1 <= x.min() <= x.max() < stop):
            raise InputError(f"{name}, shape {x.shape}, must be within -1..{stop - 1} for {n} tokens: another state?")
    if np.any((state.z < 0) != (state.word < 0)):
        raise InputError("a token without a topic must be one without a word: the state is damaged")
    return np.array(state.z, dtype=np.int32), np.array(state.word, dtype=np.int32)


def counted(z: I32, word: I32, state: AwareState) -> AwareState:
    """The state with topics z [N] and words, and what they add up to."""
    V, K = state.cwk.shape
    cells = word[z >= 0].astype(np.int64) * K + z[z >= 0]
    cwk = np.bincount(cells, minlength=V * K).reshape(V, K).astype(np.int32)
    ck = cwk.sum(axis=0, dtype=np.int64)
    return AwareState(z, word, cwk, ck, checked_alpha(state.alpha, K), checked_prior(state.beta, V))


@kernel
def _draw_rows(cwk: I32, beta: F64, key: np.uint64, phi: F32) -> None:
    """Gamma(C_wk + beta_w) variates."""
    K = cwk.shape[1]
    for w in range(cwk.shape[0]):
        for k in range(K):
            phi[w, k] = gamma(cwk[w, k] + beta[w], bits(key, np.uint64(w * K + k)))
