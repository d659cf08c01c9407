"""The papers' private samplers for LDA, to the letter (iFTM, section 3.1), on what `lda.init` starts.

The likelihood of a token is read from its *report*, the noisy entries n^ above tau of its one-hot vector, by the
plug-in exponent exp(sum_w n^_w log phi_zw) (8). C^KW and the word proposal count `words`, the raw words, as the paper
prints it. Without reports this is plain partially collapsed Gibbs, or MH. All randomness is a pure
function of `key`, at any number of threads.

With reports, z given Phi (8) has an exact posterior, which `gibbs` and fresh `mh` draw from. The whole chain has none:
it draws Phi given the raw words (7) and z given the reports, and no joint distribution has both as its conditionals.

    state = lda.init(words, documents, V=2_949, K=20, alpha=0.1, beta=0.01, key=7)
    state, info = run(words, documents, state, sweeps=50, key=8, sampler="mh", reports=reports, threads=2)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args

import numpy as np

from tertulia._arrays import F64, I32, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import check_alpha, check_assignment, check_beta, check_documents
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import derive
from tertulia.kernels.ftm_paper import gibbs, mh
from tertulia.kernels.ftm_paper.gibbs import Entries, PhiCounts, Units
from tertulia.kernels.ftm_paper.log_phi import draw_log_phi, mean_log_phi
from tertulia.kernels.lda import LDAState
from tertulia.kernels.lda.options import NEVER, Learning, Phi, SweepInfo, check_options
from tertulia.kernels.lda.phi import NO_TOTALS, mean_totals

Sampler = Literal["gibbs", "mh"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
Proposals = Literal["stale", "fresh"]
_SWEEP, _PHI = 0, 1  # labels of the random streams within a sweep
_TOKENS = 2048  # tokens whose reports are asked for at a time: bounds the memory


class Report(Protocol):
    """Reports of n tokens: those of token i are words `idx` and noisy entries `value`, at indptr[i]..indptr[i+1].

    `kernels.reports.Reports` is one.
    """

    @property
    def indptr(self) -> Array:
        """Offsets [n+1] into the others."""

    @property
    def idx(self) -> Array:
        """Words."""

    @property
    def value(self) -> Array:
        """Their noisy entries."""


Source = Report | Callable[[int, int], Report]  # the reports of all tokens, or of tokens first..last-1 on demand


def run(
    words: Array,
    documents: Array,
    state: LDAState,
    sweeps: int,
    key: int,
    sampler: Sampler = "mh",
    reports: Source | None = None,
    proposals: Proposals = "stale",
    phi: Phi = "draw",
    learning: Learning = NEVER,
    threads: int = 1,
) -> tuple[LDAState, SweepInfo]:
    """Sweep over all tokens `sweeps` times and return the new state.

    An entry of a report costs `gibbs` O(K), and `mh` O(1). The `stale` proposals of `mh` are the papers', an
    approximation that a short document feels; `fresh` ones are exact (see `mh`). `phi` and `learning` are as in
    `lda.run`.
    """
    V = state.cwk.shape[0]
    words, documents = check_documents(words, documents, V)
    units = Units(words, freeze(np.arange(len(words) + 1), np.int64), documents)
    settings = (sampler, proposals, phi, learning)
    return run_units(units, state, sweeps, key, reports, settings, threads)


Settings = tuple[Sampler, Proposals, Phi, Learning]


def run_units(
    units: Units, state: LDAState, sweeps: int, key: int, reports: Source | None, settings: Settings, threads: int
) -> tuple[LDAState, SweepInfo]:
    """Do `run` for tokens that share topics in units; the state's z is that of the units."""
    sampler, proposals, phi, learning = settings
    check_options(sampler, SAMPLERS, phi, sweeps, threads, learning)
    if proposals not in get_args(Proposals):
        raise InputError(f"proposals = {proposals!r}: choose 'stale' (the papers') or 'fresh' (exact)")
    V, K = state.cwk.shape
    z = check_assignment(state.z, len(units.tokens) - 1, K)
    state = count_state(units, z, V, LDAState(z, state.cwk, state.ck, check_alpha(state.alpha, K), state.beta))
    source, changed = _plain(units.words) if reports is None else reports, 0
    for s in range(sweeps):
        totals = mean_totals(state.ck, V * state.beta) if phi == "mean" and reports is None else NO_TOTALS
        changed = _sweep(units, state, source, totals, derive(key, s), settings, threads)
        state = count_state(units, state.z, V, state)
        if learning.is_due(s):
            state = _fit_priors(units, state, learning)
    return state, SweepInfo(changed, math.nan)


def count_state(units: Units, z: I32, V: int, state: LDAState) -> LDAState:
    """Return the state with topics z [U] and their counts."""
    cwk = _count(units, z, V, state.alpha.shape[0])
    return LDAState(z, cwk, cwk.sum(axis=0, dtype=np.int64), state.alpha, check_beta(state.beta))


def _fit_priors(units: Units, state: LDAState, learning: Learning) -> LDAState:
    z, cwk, ck, alpha, beta = state[:5]
    alpha, beta = learning.fit(units.documents, z, alpha, beta, lambda: (cwk, ck))
    return state._replace(alpha=alpha, beta=beta)


def _sweep(
    units: Units,
    state: LDAState,
    source: Source,
    totals: F64,
    stream: np.uint64,
    settings: Settings,
    threads: int,
) -> int:
    """Redraw every topic in place; return how many changed."""
    z, cwk, ck, alpha, beta = state[:5]
    sampler, proposals, phi, _ = settings
    counted = PhiCounts(cwk, totals, beta)
    log_phi = mean_log_phi(cwk, ck, beta) if phi == "mean" else draw_log_phi(cwk, beta, derive(stream, _PHI), threads)
    key, fresh = derive(stream, _SWEEP), proposals == "fresh"
    redraw: Callable[..., int] = gibbs.sweep_block
    fixed: tuple[Any, ...] = (log_phi, counted, alpha, key)
    if sampler == "mh":
        tables = mh.word_tables(units.words, log_phi if fresh else mean_log_phi(cwk, ck, beta), threads)
        redraw, fixed = mh.sweep_block, (np.ascontiguousarray(log_phi.T), counted, tables, alpha, fresh, key)

    def block(first: int, last: int) -> int:
        start, stop = units.tokens[units.documents[[first, last]]]
        entries = _entries(source, int(start), int(stop), cwk.shape[0])
        return redraw(units, first, last, z, entries, *fixed)

    parts = max(threads, -(-len(units.words) // _TOKENS))
    return sum(parallel.run(block, parallel.cuts(units.tokens[units.documents], parts), threads))


def _plain(words: I32) -> Entries:
    """Return reports without noise: the entry 1 at the word itself."""
    return Entries(np.arange(len(words) + 1), words, np.ones(len(words), dtype=np.float32), 0)


def _entries(source: Source, first: int, last: int, V: int) -> Entries:
    """Return the reports of tokens first..last-1, checked for compiled code."""
    part = source(first, last) if callable(source) else source
    indptr = freeze(part.indptr if callable(source) else part.indptr[first : last + 1], np.int64)
    idx, value = freeze(part.idx, np.int32), freeze(part.value, np.float32)
    if len(indptr) != last - first + 1 or np.any(indptr[1:] < indptr[:-1]) or len(idx) != len(value):
        raise InputError(f"reports of tokens {first}..{last - 1} are incomplete: are they another corpus's?")
    used = idx[indptr[0] : indptr[-1]]
    if indptr[0] < 0 or indptr[-1] > len(idx) or (len(used) and (used.min() < 0 or used.max() >= V)):
        raise InputError(f"reports speak of words outside 0..{V - 1}: are they another vocabulary's?")
    return Entries(indptr, idx, value, first)


@kernel
def _count(units: Units, z: I32, V: int, K: int) -> I32:
    cwk = np.zeros((V, K), dtype=np.int32)
    for u in range(z.shape[0]):
        for t in range(units.tokens[u], units.tokens[u + 1]):
            cwk[units.words[t], z[u]] += 1
    return cwk
