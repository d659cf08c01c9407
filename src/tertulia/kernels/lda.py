"""The front door of LDA training: `init`, `run` and `topic_word` on plain arrays.

A corpus is `words` [N], the tokens' indices into a vocabulary of V, and `documents` [D+1], token offsets. All
randomness is a pure function of `key`: the same call gives the same bits, at any number of threads. Give every call a
key of its own; a state is never changed in place, so a call may be repeated.

>>> state = init(words, documents, V=8_000, K=50, alpha=0.1, beta=0.01, key=7)
>>> state, info = run(words, documents, state, sweeps=100, key=8, threads=2)
>>> topic_word(state).shape
(50, 8000)
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np

from tertulia.arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels import dense, gibbs, priors
from tertulia.kernels.check import (
    checked_alpha,
    checked_assignment,
    checked_beta,
    checked_documents,
    checked_size,
    checked_topics,
)
from tertulia.kernels.compiled import frozen, kernel
from tertulia.kernels.phi import draw_phi, mean_phi
from tertulia.kernels.rng import bits, derive, uniform

Sampler = Literal["dense", "gibbs"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
Phi = Literal["draw", "mean"]
LearnAlpha = bool | Literal["symmetric"]
_SWEEP, _PHI = 0, 1  # labels of the random streams within a sweep
_INIT = 2**63  # no sweep has this number


class LDAState(NamedTuple):
    """Where a chain is: the tokens' topics, what they add up to, and the priors."""

    z: I32  # [N] topic of each token
    cwk: I32  # [V, K] tokens of word w in topic k
    ck: I64  # [K] tokens in topic k
    alpha: F64  # [K]
    beta: float


class SweepInfo(NamedTuple):
    """What the last sweep of a run did; `log_joint` is NaN unless the run was asked to monitor."""

    changed: int
    log_joint: float


def init(words: Array, documents: Array, V: int, K: int, alpha: float | Array, beta: float, key: int) -> LDAState:
    """A state with every topic drawn uniformly."""
    checked_size(V, K)
    words, documents = checked_documents(words, documents, V)
    z = _uniform_topics(len(words), K, derive(key, _INIT))
    return _counted(words, z, V, checked_alpha(alpha, K), checked_beta(beta))


def init_from_topics(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, beta: float, key: int
) -> LDAState:
    """A state drawn from given topics [K, V]: p(z_i = k) ∝ topic_word[k, w_i] (FTM, algorithm 1, lines 9-10).

    A word without mass in any topic gets a uniform one.
    """
    topic_word = checked_topics(topic_word)
    K, V = topic_word.shape
    words, documents = checked_documents(words, documents, V)
    cumulative = np.cumsum(topic_word.T, axis=1, dtype=np.float64)  # [V, K]
    cumulative[cumulative[:, -1] == 0.0] = np.arange(1, K + 1)
    z = _topics_of_words(words, cumulative, derive(key, _INIT))
    return _counted(words, z, V, checked_alpha(alpha, K), checked_beta(beta))


def run(
    words: Array,
    documents: Array,
    state: LDAState,
    sweeps: int,
    key: int,
    sampler: Sampler = "dense",
    learn_alpha: LearnAlpha = False,
    learn_beta: bool = False,
    learn_every: int = 10,
    threads: int = 1,
    phi: Phi = "draw",
    monitor: bool = False,
) -> tuple[LDAState, SweepInfo]:
    """Sweep over all tokens `sweeps` times and return the new state.

    `gibbs` is collapsed Gibbs, the reference; `dense` is partially collapsed Gibbs, faster and parallel. Both target
    the exact posterior; `phi="mean"` makes `dense` an approximation that settles sooner. After every
    `learn_every` sweeps of a call, those priors are fitted that are to be learned: alpha [K] (or one number for all
    topics, "symmetric") and beta.
    """
    _check_settings(sampler, phi, sweeps, threads, learn_every)
    words, documents, state = _checked(words, documents, state)
    changed = 0
    for s in range(sweeps):
        stream = derive(key, s)
        if sampler == "gibbs":
            changed = gibbs.sweep(words, documents, *state, derive(stream, _SWEEP))
        else:
            state, changed = _dense_sweep(words, documents, state, stream, phi, threads)
        if (s + 1) % learn_every == 0:
            state = _learned(documents, state, learn_alpha, learn_beta)
    return state, SweepInfo(changed, log_joint(words, documents, state) if monitor else math.nan)


def topic_word(state: LDAState) -> F64:
    """The posterior mean of Phi given the topics of the tokens, [K, V]: (C + beta) / (C. + V beta)."""
    V = state.cwk.shape[0]
    return np.ascontiguousarray((state.cwk.T + state.beta) / (state.ck[:, None] + V * state.beta))


def log_joint(words: Array, documents: Array, state: LDAState) -> float:
    """The collapsed log p(w, z | alpha, beta), theta and phi integrated out: samplers raise it, then hold it."""
    V, K = state.cwk.shape
    words, documents = checked_documents(words, documents, V)
    z = frozen(checked_assignment(state.z, len(words), K), np.int32)
    alpha, beta = checked_alpha(state.alpha, K), checked_beta(state.beta)
    return float(gibbs.log_joint(words, documents, z, alpha, beta, V))


def _dense_sweep(
    words: I32, documents: I64, state: LDAState, stream: np.uint64, phi: Phi, threads: int
) -> tuple[LDAState, int]:
    z, cwk, ck, alpha, beta = state
    fixed = draw_phi(cwk, ck, beta, derive(stream, _PHI), threads) if phi == "draw" else mean_phi(cwk, ck, beta)
    cwk, changed = dense.sweep(words, documents, z, fixed, alpha, derive(stream, _SWEEP), threads)
    return LDAState(z, cwk, cwk.sum(axis=0, dtype=np.int64), alpha, beta), changed


def _learned(documents: I64, state: LDAState, alpha: LearnAlpha, beta: bool) -> LDAState:
    if alpha:
        learned = priors.learn_alpha(documents, state.z, state.alpha, symmetric=alpha == "symmetric")
        state = state._replace(alpha=learned)
    if beta:
        state = state._replace(beta=priors.learn_beta(state.cwk, state.ck, state.beta))
    return state


def _check_settings(sampler: str, phi: str, sweeps: int, threads: int, learn_every: int) -> None:
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: choose one of {', '.join(SAMPLERS)}")
    if phi not in ("draw", "mean"):
        raise InputError(f"phi = {phi!r}: choose 'draw' (exact) or 'mean' (an approximation)")
    if sweeps < 0:
        raise InputError(f"sweeps = {sweeps}: it cannot be negative")
    if threads < 1 or learn_every < 1:
        raise InputError(f"threads = {threads}, learn_every = {learn_every}: both must be at least 1")


def _checked(words: Array, documents: Array, state: LDAState) -> tuple[I32, I64, LDAState]:
    """Input that compiled code may trust, and a state that may be changed in place."""
    V, K = state.cwk.shape
    words, documents = checked_documents(words, documents, V)
    z = checked_assignment(state.z, len(words), K)
    return words, documents, _counted(words, z, V, checked_alpha(state.alpha, K), checked_beta(state.beta))


def _counted(words: I32, z: I32, V: int, alpha: F64, beta: float) -> LDAState:
    cwk = _count(words, z, V, alpha.shape[0])
    return LDAState(z, cwk, cwk.sum(axis=0, dtype=np.int64), alpha, beta)


@kernel
def _count(words: I32, z: I32, V: int, K: int) -> I32:
    cwk = np.zeros((V, K), dtype=np.int32)
    for i in range(words.shape[0]):
        cwk[words[i], z[i]] += 1
    return cwk


@kernel
def _uniform_topics(n: int, K: int, key: np.uint64) -> I32:
    z = np.empty(n, dtype=np.int32)
    for i in range(n):
        z[i] = bits(key, np.uint64(i)) % np.uint64(K)
    return z


@kernel
def _topics_of_words(words: I32, cumulative: F64, key: np.uint64) -> I32:
    K = cumulative.shape[1]
    z = np.empty(words.shape[0], dtype=np.int32)
    for i in range(words.shape[0]):
        row = cumulative[words[i]]
        z[i] = min(np.searchsorted(row, row[K - 1] * uniform(key, np.uint64(i)), "right"), K - 1)
    return z
