"""Where chains begin: topics of all tokens, at random or from given topics; training has `clusters` besides."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core import parallel
from tertulia.kernels.core.cells import first_above
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, derive, uniform, uniform32
from tertulia.kernels.core.simd import draw, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width


def from_topics(words: I32, documents: I64, topic_word: Array, alpha: F64, key: np.uint64, threads: int) -> I32:
    """Topics [N] by `seat` from given topics [K, V]; a word without mass in any of them has a uniform one."""
    K, V = topic_word.shape
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    peaks = np.maximum(topic_word.max(axis=0), np.finfo(np.float64).tiny)  # [V] keeps words of tiny mass within float32
    for k in range(K):
        phi[:, k] = topic_word[k] / peaks
    return seat(words, documents, phi, alpha, derive(key, 1), threads)


def seat(words: I32, documents: I64, phi: F32, alpha: F64, key: np.uint64, threads: int = 1) -> I32:
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
    parallel.run(seat_block, jobs, threads)
    return z


@kernel
def seat_block(
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
    """Running sums over topics of each word [V, K], to draw from; a word without mass in any topic has equal shares."""
    sums: F64 = np.cumsum(topic_word.T, axis=1, dtype=np.float64)
    sums[sums[:, -1] == 0.0] = np.arange(1, len(topic_word) + 1)
    return sums


@kernel
def uniform_topics(n: int, K: int, key: np.uint64) -> I32:
    """Topics [n], each drawn uniformly."""
    z = np.empty(n, dtype=np.int32)
    for i in range(n):
        z[i] = bits(key, np.uint64(i)) % np.uint64(K)
    return z


@kernel
def topics_of_words(words: I32, cumulative: F64, key: np.uint64) -> I32:
    """Topics [N], each drawn from the running sums [V, K] of its word."""
    K = cumulative.shape[1]
    z = np.empty(words.shape[0], dtype=np.int32)
    for i in range(words.shape[0]):
        row = cumulative[words[i]]
        z[i] = first_above(row, row[K - 1] * uniform(key, np.uint64(i)))
    return z
