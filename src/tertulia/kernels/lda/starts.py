"""First topics of all tokens: uniform, from given topics, or from clusters of documents.

Training starts with tokens in the clusters of their documents, and in a few general topics that have no cluster.
General topics hold words of all subjects. Half of all tokens start there, with a probability that grows with the number
of documents that hold their word; the others start in their document's cluster. Without general topics such words would
be among the first of most topics, or all in one that takes a quarter of the corpus. `python -m benchmarks.sampler
--parts start` measures the difference.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, derive, uniform, uniform32
from tertulia.kernels.core.scalars import first_above
from tertulia.kernels.core.simd import draw, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.clusters import cluster, document_frequency
from tertulia.kernels.lda.counts import frequency


def from_topics(words: I32, documents: I64, topic_word: Array, alpha: F64, key: np.uint64, threads: int) -> I32:
    """Draw topics [N] by `draw_topics` from given topics [K, V]; a word without mass in any topic has a uniform one."""
    K, V = topic_word.shape
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    peaks = np.maximum(topic_word.max(axis=0), np.finfo(np.float64).tiny)  # [V] keeps words of tiny mass within float32
    for k in range(K):
        phi[:, k] = topic_word[k] / peaks
    return draw_topics(words, documents, phi, alpha, derive(key, 1), threads)


def draw_topics(words: I32, documents: I64, phi: F32, alpha: F64, key: np.uint64, threads: int = 1) -> I32:
    """Draw topics [N] from left to right, each given phi and the topics of the tokens before it in the document.

    p(z_i = k) ∝ (C_dk + alpha_k) phi_kw, C_dk over the tokens before i; phi is [V, padded K].
    Far nearer to what sampling settles on than draws from the document's theta, which are too diffuse.
    """
    z = np.empty(len(words), dtype=np.int32)
    prior = pad_with_zeros(alpha)
    jobs = [
        (words, documents, first, last, phi, prior, len(alpha), key, z)
        for first, last in parallel.shares(documents, threads)
    ]
    parallel.run(draw_topics_block, jobs, threads)
    return z


@kernel
def draw_topics_block(
    words: I32, documents: I64, first: int, last: int, phi: F32, alpha: F32, K: int, key: np.uint64, z: I32
) -> None:
    """Draw the topics of documents first..last-1, from left to right."""
    weight = alpha.copy()  # C_dk + alpha_k
    running = np.empty(alpha.shape[0], dtype=np.float32)
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            anywhere = int(bits(key, ~np.uint64(i)) % np.uint64(K))
            z[i] = draw(weight, phi, words[i], running, uniform32(key, np.uint64(i)), anywhere)
            weight[z[i]] += np.float32(1.0)
        for i in range(documents[d], documents[d + 1]):
            weight[z[i]] = alpha[z[i]]


def running_sums(topic_word: Array) -> F64:
    """Compute running sums over topics of each word [V, K]; a word without mass in any topic has equal shares."""
    sums: F64 = np.cumsum(topic_word.T, axis=1, dtype=np.float64)
    sums[sums[:, -1] == 0.0] = np.arange(1, len(topic_word) + 1)
    return sums


@kernel
def uniform_topics(n: int, K: int, key: np.uint64) -> I32:
    """Draw topics [n] uniformly."""
    z = np.empty(n, dtype=np.int32)
    for i in range(n):
        z[i] = bits(key, np.uint64(i)) % np.uint64(K)
    return z


@kernel
def topics_of_words(words: I32, cumulative: F64, key: np.uint64) -> I32:
    """Draw topics [N], each from the running sums [V, K] of its word."""
    K = cumulative.shape[1]
    z = np.empty(words.shape[0], dtype=np.int32)
    for i in range(words.shape[0]):
        row = cumulative[words[i]]
        z[i] = first_above(row, row[K - 1] * uniform(key, np.uint64(i)))
    return z


_GENERAL = 0.06  # of the topics have no cluster
_BEGIN_THERE = 0.5  # of the tokens, in general topics


def topics_of_clusters(words: I32, documents: I64, V: int, K: int, key: np.uint64, threads: int = 1) -> I32:
    """Assign topics [N] to all tokens; where no topic is general, those of their documents' clusters."""
    df, general = document_frequency(words, documents, V), n_general(K)
    labels = cluster(words, documents, df, K - general, derive(key, 0), threads)
    if not general:
        return np.repeat(labels, np.diff(documents))
    share, z = general_share(frequency(words, V), df), np.empty(len(words), dtype=np.int32)
    jobs = [(words, documents, *some, labels, share, K - general, general, derive(key, 1), z)
            for some in parallel.shares(documents, threads)]  # fmt: skip
    parallel.run(assign_block, jobs, threads)
    return z


def n_general(K: int) -> int:
    """Return how many of K topics are general: several or none, for one alone would take a quarter of the corpus.

    >>> n_general(20), n_general(50), n_general(100)
    (0, 3, 6)
    """
    general = int(_GENERAL * K)
    return general if general > 1 else 0


def general_share(tokens: I64, df: I64) -> F32:
    """Compute the share of each word's tokens that begin in general topics [V]: ∝ the word's documents, at most 1.

    >>> general_share(np.array([50, 40, 10]), np.array([10, 5, 1])).astype(float).round(2)
    array([0.7 , 0.35, 0.07])
    """
    share = np.zeros(len(df), dtype=np.float32)
    order = np.argsort(-df, kind="stable")[: np.count_nonzero(df)]
    if not len(order):
        return share
    n, d = tokens[order].astype(np.float64), df[order].astype(np.float64)
    left = _BEGIN_THERE * n.sum() - (np.cumsum(n) - n)  # if all tokens of the words before begin there
    times = left / np.cumsum((n * d)[::-1])[::-1]
    whole = int(np.argmax(times * d <= 1.0))  # the number of words that begin there with all their tokens
    share[order[:whole]] = 1.0
    share[order[whole:]] = times[whole] * d[whole:]
    return share


@kernel
def assign_block(
    words: I32, documents: I64, first: int, last: int, labels: I32, share: F32, general: int, n: int, key: np.uint64,
    z: I32,
) -> None:  # fmt: skip
    """Assign first topics to documents first..last-1: general ones, n from `general` on, or the document's cluster."""
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            u, limit = uniform(key, np.uint64(i)), share[words[i]]
            z[i] = general + np.int64(u / limit * n) if u < limit else labels[d]
