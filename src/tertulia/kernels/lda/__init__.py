"""The front door of LDA training: `train`, or `init` and `run`, and `topic_word`, on plain arrays.

A corpus is `words` [N], the tokens' indices into a vocabulary of V, and `documents` [D+1], token offsets. All
randomness is a pure function of `key`: the same call gives the same bits, at any number of threads. Give every call a
key of its own; a state is never changed in place, so a call may be repeated.

>>> state = train(words, documents, V=8_000, K=50, alpha=0.1, beta=0.01, sweeps=50, key=7, threads=2)
>>> topic_word(state).shape
(50, 8000)
>>> state, info = run(words, documents, state, sweeps=100, key=8)
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_array

from tertulia._arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.checks import (
    checked_alpha,
    checked_assignment,
    checked_beta,
    checked_documents,
    checked_size,
    checked_topics,
)
from tertulia.kernels.core.jit import frozen, kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.lda import gibbs, priors, samplers
from tertulia.kernels.lda import init as starts
from tertulia.kernels.lda.by_word import columns
from tertulia.kernels.lda.dense import counts, frequency
from tertulia.kernels.lda.sparse_phi import count

Sampler = Literal["auto", "dense", "gibbs", "sparse", "warp"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
Phi = Literal["draw", "mean"]
Start = Literal["warm", "random"]
LearnAlpha = bool | Literal["symmetric"]
_INIT = 2**63  # no sweep has this number
_DENSE_TOPICS, _SPARSE_TOPICS = 400, 5_000  # up to where each was measured to be fastest


class LDAState(NamedTuple):
    """Where a chain is: the tokens' topics, what they add up to, and the priors."""

    z: I32  # [N] topic of each token
    cwk: I32 | csr_array  # [V, K] tokens of word w in topic k; sparse where V x K is beyond 2**27
    ck: I64  # [K] tokens in topic k
    alpha: F64  # [K]
    beta: float


class SweepInfo(NamedTuple):
    """What the last sweep of a run did; `log_joint` is NaN unless the run was asked to monitor."""

    changed: int
    log_joint: float


class Learning(NamedTuple):
    """Which priors are fitted on the way, and after how many sweeps each time."""

    alpha: LearnAlpha
    beta: bool
    every: int


def train(
    words: Array,
    documents: Array,
    V: int,
    K: int,
    alpha: float | Array,
    beta: float,
    sweeps: int,
    key: int,
    *,
    start: Start | Array = "warm",
    sampler: Sampler = "auto",
    learn_alpha: LearnAlpha = False,
    learn_beta: bool = False,
    learn_every: int = 10,
    threads: int = 1,
    phi: Phi = "mean",
) -> LDAState:
    """Train from scratch: a start, then sweeps. This is the fastest way to good topics that we know.

    The start is one epoch of online EM ("warm"), uniform topics ("random"), or topics [K, V] to continue from. `phi` is
    "mean" here, an approximation that suits point estimates: on 20 Newsgroups with K = 100, it reaches in a third of
    the sweeps the held-out perplexity of exact draws. Ask for "draw" to sample the posterior.
    """
    checked_size(V, K)
    _check_settings(sampler, phi, sweeps, threads, learn_every)
    words, documents = checked_documents(words, documents, V)
    alpha, beta, stream = checked_alpha(alpha, K), checked_beta(beta), derive(key, _INIT)
    if isinstance(start, str):
        if start not in get_args(Start):
            raise InputError(f"start = {start!r}: choose 'warm' or 'random', or give topics [K, V] to continue from")
        warm = start == "warm"
        z = (
            starts.warm(words, documents, V, alpha, beta, stream, threads)
            if warm
            else _uniform_topics(len(words), K, stream)
        )
    else:
        topics = checked_topics(start)
        if topics.shape != (K, V):
            raise InputError(f"start has shape {topics.shape}, but there are {K} topics and {V} words")
        z = starts.from_topics(words, documents, topics, alpha, stream, threads)
    learning = Learning(learn_alpha, learn_beta, learn_every)
    alpha, beta, _ = _sweep(words, documents, V, z, alpha, beta, sweeps, key, sampler, learning, phi, threads)
    return _counted(words, z, V, alpha, beta, threads)


def choose(K: int, V: int, N: int) -> Sampler:
    """The sampler that "auto" stands for, by measurement (docs/performance.md).

    >>> choose(K=100, V=20_000, N=2_000_000), choose(K=2_000, V=20_000, N=2_000_000)
    ('dense', 'sparse')
    """
    if K <= _DENSE_TOPICS and V * K <= samplers.DENSE_CELLS:
        return "dense"
    return "sparse" if K <= _SPARSE_TOPICS else "warp"


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

    A word without mass in any topic gets a uniform one. (`train` has a better start, which looks at the document too.)
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

    `gibbs` is collapsed Gibbs, the reference; `dense` and `sparse` are partially collapsed Gibbs, faster and parallel,
    for few and for many topics. These three target the exact posterior; `phi="mean"` makes the last two an
    approximation that settles sooner. `warp` (see there for its approximation) is for topics in the thousands, with no
    use for `phi`. "auto" takes what `choose` says. After every `learn_every` sweeps of a call, those priors are fitted
    that are to be learned: alpha [K] (or one number for all topics, "symmetric") and beta.
    """
    _check_settings(sampler, phi, sweeps, threads, learn_every)
    words, documents, z, alpha, beta = _checked(words, documents, state)
    V, learning = state.cwk.shape[0], Learning(learn_alpha, learn_beta, learn_every)
    alpha, beta, changed = _sweep(words, documents, V, z, alpha, beta, sweeps, key, sampler, learning, phi, threads)
    after = _counted(words, z, V, alpha, beta, threads)
    return after, SweepInfo(changed, log_joint(words, documents, after) if monitor else math.nan)


def topic_word(state: LDAState) -> F64:
    """The posterior mean of Phi given the topics of the tokens, [K, V]: (C + beta) / (C. + V beta)."""
    V = state.cwk.shape[0]
    cwk = state.cwk if isinstance(state.cwk, np.ndarray) else state.cwk.toarray()
    return np.ascontiguousarray((cwk.T + state.beta) / (state.ck[:, None] + V * state.beta))


def log_joint(words: Array, documents: Array, state: LDAState) -> float:
    """The collapsed log p(w, z | alpha, beta), theta and phi integrated out: samplers raise it, then hold it."""
    words, documents, z, alpha, beta = _checked(words, documents, state)
    return float(gibbs.log_joint(words, documents, frozen(z, np.int32), alpha, beta, state.cwk.shape[0]))


def _sweep(
    words: I32, documents: I64, V: int, z: I32, alpha: F64, beta: float, sweeps: int, key: int, sampler: Sampler,
    learning: Learning, phi: Phi, threads: int,
) -> tuple[F64, float, int]:  # fmt: skip
    """Redraw the topics z in place; return the priors after it and how many topics the last sweep changed."""
    name = choose(len(alpha), V, len(words)) if sampler == "auto" else sampler
    learns = bool(learning.alpha or learning.beta)
    changed, step = 0, learning.every if learns else max(sweeps, 1)
    for first in range(0, sweeps, step):
        streams = [derive(key, s) for s in range(first, min(first + step, sweeps))]
        stretch = samplers.Stretch(words, documents, V, z, alpha, beta, streams, phi, threads)
        changed = samplers.SAMPLERS[name](stretch)
        if learns and len(streams) == step:
            alpha, beta = _learned(words, documents, V, z, alpha, beta, learning)
    return alpha, beta, changed


def _learned(
    words: I32, documents: I64, V: int, z: I32, alpha: F64, beta: float, learning: Learning
) -> tuple[F64, float]:
    if learning.alpha:
        alpha = priors.learn_alpha(documents, z, alpha, symmetric=learning.alpha == "symmetric")
    if learning.beta:
        _, cwk, ck, _, _ = _counted(words, z, V, alpha, beta)
        beta = priors.learn_beta(_cells(cwk), ck, beta)
    return alpha, beta


def _cells(cwk: I32 | csr_array) -> I32:
    """The counts above zero in an array of V rows: that is all that `learn_beta` looks at."""
    if isinstance(cwk, np.ndarray):
        return cwk
    cells = np.zeros((cwk.shape[0], -(-cwk.nnz // cwk.shape[0])), dtype=np.int32)
    cells.flat[: cwk.nnz] = cwk.data
    return cells


def _check_settings(sampler: str, phi: str, sweeps: int, threads: int, learn_every: int) -> None:
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: choose one of {', '.join(SAMPLERS)}")
    if phi not in get_args(Phi):
        raise InputError(f"phi = {phi!r}: choose 'draw' (exact) or 'mean' (an approximation)")
    if sweeps < 0:
        raise InputError(f"sweeps = {sweeps}: it cannot be negative")
    if threads < 1 or learn_every < 1:
        raise InputError(f"threads = {threads}, learn_every = {learn_every}: both must be at least 1")


def _checked(words: Array, documents: Array, state: LDAState) -> tuple[I32, I64, I32, F64, float]:
    """Input that compiled code may trust, and topics z that may be changed in place."""
    V, K = state.cwk.shape
    words, documents = checked_documents(words, documents, V)
    z = checked_assignment(state.z, len(words), K)
    return words, documents, z, checked_alpha(state.alpha, K), checked_beta(state.beta)


def _counted(words: I32, z: I32, V: int, alpha: F64, beta: float, threads: int = 1) -> LDAState:
    K = len(alpha)
    ck = frequency(frozen(z, np.int32), K)
    if V * K <= samplers.DENSE_CELLS:
        return LDAState(z, counts(words, z, V, K, threads), ck, alpha, beta)
    starts, topics, tokens = count(columns(words, V, threads), z, K, threads)
    cwk = csr_array((tokens.astype(np.int32), topics.astype(np.int32), starts), shape=(V, K))
    return LDAState(z, cwk, ck, alpha, beta)


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
