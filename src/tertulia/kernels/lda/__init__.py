"""The entry points of LDA training on plain arrays: `train`, or `init` and `run`, and `topic_word`.

A corpus is `words` [N], the tokens' indices into a vocabulary of V, and `documents` [D+1], token offsets. All
randomness is a pure function of `key`: the same call gives the same bits, at any number of threads. Give every call a
key of its own; a state is never changed in place, so a call may be repeated.

    state = train(words, documents, V=8_000, K=50, alpha=0.1, beta=0.01, sweeps=50, key=7, threads=2)
    topic_word(state).shape  # (50, 8000)
    state, info = run(words, documents, state, sweeps=100, key=8)
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_array

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.checks import (
    check_alpha,
    check_assignment,
    check_beta,
    check_documents,
    check_size,
    check_topics,
)
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import gibbs, samplers, starts
from tertulia.kernels.lda.blocked import MOST_TOKENS
from tertulia.kernels.lda.clusters import MOST_TOPICS, cluster, document_frequency
from tertulia.kernels.lda.counts import counts, frequency
from tertulia.kernels.lda.estimate import MOST_SWEEPS, TOLERANCE, WINDOW, Progress, Schedule, fit
from tertulia.kernels.lda.options import NEVER, Learning, Phi, SweepInfo, check_options
from tertulia.kernels.lda.sparse_phi import count
from tertulia.kernels.lda.starts import topics_of_clusters
from tertulia.kernels.lda.word_columns import columns

Sampler = Literal["auto", "blocked", "gibbs", "sparse", "warp"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)
Start = Literal["clusters", "random"]
_INIT = 2**63  # no sweep has this number
_SPARSE_TOPICS = 5_000  # up to here `sparse` was measured to be faster than `warp`


class LDAState(NamedTuple):
    """The state of a chain: the tokens' topics, their counts, and the priors.

    A trained state also has the mean of its counts over some sweeps: its topics are better than those of z alone.
    """

    z: I32  # [N] topic of each token
    cwk: I32 | csr_array  # [V, K] tokens of word w in topic k; sparse where V x K is beyond 2**27
    ck: I64  # [K] tokens in topic k
    alpha: F64  # [K]
    beta: float
    mean: F32 | None = None  # [V, K]


def train(
    words: Array,
    documents: Array,
    V: int,
    K: int,
    alpha: float | Array,
    beta: float,
    sweeps: int | None,
    key: int,
    *,
    start: Start | Array = "clusters",
    sampler: Sampler = "auto",
    learning: Learning = NEVER,
    threads: int = 1,
    most_sweeps: int = MOST_SWEEPS,
    progress: Progress | None = None,
) -> LDAState:
    """Train from scratch to a point estimate, the fastest way to good topics that we know.

    The start is clusters of documents, uniform topics ("random"), or topics [K, V] to continue from. Without `sweeps`,
    training ends when it has settled, or after `most_sweeps`. "auto" is `blocked`, which ends with a mean over sweeps,
    unless there are too many words and topics. `progress` is called after a sweep with the number of sweeps so far and
    a perplexity. To sample from the posterior, take `init` and `run`.
    """
    check_size(V, K)
    check_options(sampler, SAMPLERS, "mean", most_sweeps if sweeps is None else sweeps, threads, learning)
    words, documents = check_documents(words, documents, V)
    alpha, beta = check_alpha(alpha, K), check_beta(beta)
    z = _first_topics(words, documents, V, alpha, start, derive(key, _INIT), threads)
    schedule = Schedule(sweeps, most_sweeps)
    name = choose(K, V, int(frequency(words, V).max(initial=0))) if sampler == "auto" else sampler
    if name != "blocked":
        how = (key, name, learning, "mean", threads)
        return _settle(words, documents, V, z, alpha, beta, schedule, how, progress)
    found = fit(words, documents, V, z, alpha, beta, key, schedule, learning, threads, progress)
    return _count_state(words, z, V, found.alpha, found.beta, threads)._replace(mean=found.cells[:, :K])


def _first_topics(
    words: I32, documents: I64, V: int, alpha: F64, start: Start | Array, key: np.uint64, threads: int
) -> I32:
    K = len(alpha)
    if not isinstance(start, str):
        topics = check_topics(start)
        if topics.shape != (K, V):
            raise InputError(f"start has shape {topics.shape}, but there are {K} topics and {V} words")
        return starts.from_topics(words, documents, topics, alpha, key, threads)
    if start not in get_args(Start):
        raise InputError(f"start = {start!r}: choose 'clusters' or 'random', or give topics [K, V] to continue from")
    if start == "random" or K > MOST_TOPICS or not len(words):
        return starts.uniform_topics(len(words), K, key)
    return topics_of_clusters(words, documents, V, K, key, threads)


def _settle(
    words: I32, documents: I64, V: int, z: I32, alpha: F64, beta: float, schedule: Schedule, how: Any,
    progress: Progress | None,
) -> LDAState:  # fmt: skip
    """Sweep with a sampler that keeps no perplexity; after every window, check by the joint likelihood for the end."""
    key, trace, done = how[0], [], 0
    most = schedule.most if schedule.sweeps is None else schedule.sweeps
    window = -(-WINDOW // how[2].every) * how[2].every  # priors are learned at its end
    while done < most:
        step = min(window, most - done)
        part = (derive(key, done), *how[1:]) if done else how
        alpha, beta, _ = _sweep(words, documents, V, z, alpha, beta, step, *part)
        done += step
        if schedule.sweeps is None or progress is not None:
            joint = gibbs.log_joint(words, documents, freeze(z, np.int32), alpha, beta, V)
            trace.append(math.exp(-joint / max(len(z), 1)))
            if progress is not None:
                progress(done, trace[-1])
        if schedule.sweeps is None and len(trace) > 1 and trace[-2] - trace[-1] < TOLERANCE * trace[-2]:
            break
    return _count_state(words, z, V, alpha, beta, how[-1])


def cluster_topics(words: Array, documents: Array, V: int, K: int, beta: float, key: int, *, threads: int = 1) -> F64:
    """Compute the topics [K, V] of K clusters of documents, from all their tokens: the start of SentenceLDA.

    There are no general topics: a sentence has one topic, so general words cannot have a topic of their own.
    """
    check_size(V, K)
    words, documents = check_documents(words, documents, V)
    stream = derive(key, _INIT)
    if K > MOST_TOPICS or not len(words):
        z = starts.uniform_topics(len(words), K, stream)
    else:
        df = document_frequency(words, documents, V)
        z = np.repeat(cluster(words, documents, df, K, stream, threads), np.diff(documents))
    return topic_word(_count_state(words, z, V, np.ones(K), check_beta(beta), threads))


def choose(K: int, V: int, most: int) -> Sampler:
    """Choose the sampler for "auto", by measurement (docs/performance.md); `most` tokens have the same word.

    >>> choose(K=100, V=20_000, most=9_000), choose(K=2_000, V=200_000, most=9_000)
    ('blocked', 'sparse')
    """
    if V * K <= samplers.DENSE_CELLS and most < MOST_TOKENS:
        return "blocked"
    return "sparse" if K <= _SPARSE_TOPICS else "warp"


def init(words: Array, documents: Array, V: int, K: int, alpha: float | Array, beta: float, key: int) -> LDAState:
    """Make a state with every topic drawn uniformly."""
    check_size(V, K)
    words, documents = check_documents(words, documents, V)
    z = starts.uniform_topics(len(words), K, derive(key, _INIT))
    return _count_state(words, z, V, check_alpha(alpha, K), check_beta(beta))


def init_from_topics(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, beta: float, key: int
) -> LDAState:
    """Draw a state from given topics [K, V]: p(z_i = k) ∝ topic_word[k, w_i] (FTM, algorithm 1, lines 9-10).

    A word without mass in any topic gets a uniform one. (`train` has a better start, which looks at the document too.)
    """
    topic_word = check_topics(topic_word)
    K, V = topic_word.shape
    words, documents = check_documents(words, documents, V)
    z = starts.topics_of_words(words, starts.running_sums(topic_word), derive(key, _INIT))
    return _count_state(words, z, V, check_alpha(alpha, K), check_beta(beta))


def run(
    words: Array,
    documents: Array,
    state: LDAState,
    sweeps: int,
    key: int,
    sampler: Sampler = "gibbs",
    learning: Learning = NEVER,
    threads: int = 1,
    phi: Phi = "draw",
    monitor: bool = False,
) -> tuple[LDAState, SweepInfo]:
    """Sweep over all tokens `sweeps` times and return the new state.

    `gibbs` is collapsed Gibbs, the reference, in one thread. `sparse` is partially collapsed Gibbs, parallel, for many
    topics. Both target the exact posterior, but `phi="mean"` makes `sparse` an approximation that settles sooner.
    `blocked` is collapsed Gibbs whose counts change at the end of a block: the fastest, and an approximation. `warp`,
    another approximation, is for topics in the thousands. Only `sparse` reads `phi`. "auto" takes what `choose`
    returns. `learning` names the priors that are fitted on the way.
    """
    check_options(sampler, SAMPLERS, phi, sweeps, threads, learning)
    words, documents, z, alpha, beta = _check_input(words, documents, state)
    V = state.cwk.shape[0]
    alpha, beta, changed = _sweep(words, documents, V, z, alpha, beta, sweeps, key, sampler, learning, phi, threads)
    after = _count_state(words, z, V, alpha, beta, threads)
    return after, SweepInfo(changed, log_joint(words, documents, after) if monitor else math.nan)


def topic_word(state: LDAState) -> F64:
    """Compute the posterior mean of Phi given the counts, [K, V]: (C + beta) / (C. + V beta)."""
    cwk = state.cwk if state.mean is None else state.mean
    counts = cwk.T.astype(np.float64)
    counts = (counts if isinstance(counts, np.ndarray) else counts.toarray()) + state.beta
    return np.ascontiguousarray(counts / counts.sum(axis=1, keepdims=True))


def topic_sizes(state: LDAState) -> F64:
    """Return the tokens in each topic [K], the mean over sweeps where there is one."""
    return state.ck.astype(np.float64) if state.mean is None else state.mean.sum(axis=0, dtype=np.float64)


def log_joint(words: Array, documents: Array, state: LDAState) -> float:
    """Compute the collapsed log p(w, z | alpha, beta), with theta and phi integrated out; sampling raises it."""
    words, documents, z, alpha, beta = _check_input(words, documents, state)
    return float(gibbs.log_joint(words, documents, freeze(z, np.int32), alpha, beta, state.cwk.shape[0]))


def _sweep(
    words: I32, documents: I64, V: int, z: I32, alpha: F64, beta: float, sweeps: int, key: int, sampler: Sampler,
    learning: Learning, phi: Phi, threads: int,
) -> tuple[F64, float, int]:  # fmt: skip
    """Redraw the topics z in place; return the priors after it and how many topics the last sweep changed."""
    most = int(frequency(words, V).max(initial=0)) if sampler == "auto" else 0
    name = choose(len(alpha), V, most) if sampler == "auto" else sampler
    changed, schedule = 0, learning if learning.learns else Learning(every=max(sweeps, 1))
    for numbers in schedule.stretches(sweeps):
        streams = [derive(key, s) for s in numbers]
        stretch = samplers.Stretch(words, documents, V, z, alpha, beta, streams, phi, threads)
        changed = samplers.SAMPLERS[name](stretch)
        if schedule.is_due(numbers[-1]):
            alpha, beta = learning.fit(documents, z, alpha, beta, partial(_count_cells, words, z, V, len(alpha)))
    return alpha, beta, changed


def _count_cells(words: I32, z: I32, V: int, K: int) -> tuple[I32, I64]:
    """Return the counts above zero in an array of V rows, all that `learn_beta` reads, and those of topics [K]."""
    cwk, ck = _count(words, z, V, K)
    if isinstance(cwk, np.ndarray):
        return cwk, ck
    cells = np.zeros((V, -(-cwk.nnz // V)), dtype=np.int32)
    cells.flat[: cwk.nnz] = cwk.data
    return cells, ck


def _check_input(words: Array, documents: Array, state: LDAState) -> tuple[I32, I64, I32, F64, float]:
    """Check input for compiled code; return copies of topics z that may be changed in place."""
    V, K = state.cwk.shape
    words, documents = check_documents(words, documents, V)
    z = check_assignment(state.z, len(words), K)
    return words, documents, z, check_alpha(state.alpha, K), check_beta(state.beta)


def _count_state(words: I32, z: I32, V: int, alpha: F64, beta: float, threads: int = 1) -> LDAState:
    return LDAState(z, *_count(words, z, V, len(alpha), threads), alpha, beta)


def _count(words: I32, z: I32, V: int, K: int, threads: int = 1) -> tuple[I32 | csr_array, I64]:
    """Count tokens of words in topics, in a sparse matrix where there are many of both, and tokens in topics."""
    ck = frequency(z, K)
    if V * K <= samplers.DENSE_CELLS:
        return counts(words, z, V, K), ck
    starts, topics, tokens = count(columns(words, V, threads), z, K, threads)
    return csr_array((tokens.astype(np.int32), topics.astype(np.int32), starts), shape=(V, K)), ck
