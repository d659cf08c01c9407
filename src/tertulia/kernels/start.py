"""Where training begins: topics of all tokens, from one epoch of online EM or from given topics."""

from __future__ import annotations

import numpy as np

from tertulia.arrays import F32, F64, I32, I64, Array
from tertulia.kernels import blocks, oem
from tertulia.kernels.compiled import frozen, kernel
from tertulia.kernels.dense import frequency
from tertulia.kernels.lanes import draw, padded, padded_with_zeros
from tertulia.kernels.rng import bits, derive, uniform32

_MOST_TOPICS = 1024
_MOST_CELLS = 2**27  # rows x topics: half a gigabyte


def warm(words: I32, documents: I64, V: int, alpha: F64, beta: float, key: np.uint64, threads: int) -> I32:
    """Topics [N] by one epoch of online EM, then `seat`.

    An epoch costs what K does. So it has at most 1,024 topics; of more, each of those is the parent of several, and a
    document takes one child of each parent at random, for sampling to tell them apart. Likewise the rarest words share
    a row where the matrix would be too large.
    """
    K = min(len(alpha), _MOST_TOPICS)
    prior = np.zeros(K)
    np.add.at(prior, np.arange(len(alpha)) % K, alpha)
    rows = common_rows(words, V, _MOST_CELLS // padded(K))
    phi = oem.epoch(words, documents, rows, K, prior, beta, derive(key, 0), threads)
    z = seat(words, documents, rows, phi, prior, derive(key, 1), threads)
    if len(alpha) > K:
        descend(documents, z, K, len(alpha), derive(key, 2))
    return z


def from_topics(words: I32, documents: I64, topic_word: Array, alpha: F64, key: np.uint64, threads: int) -> I32:
    """Topics [N] by `seat` from given topics [K, V]; a word without mass in any of them has a uniform one."""
    K, V = topic_word.shape
    phi = np.zeros((V, padded(K)), dtype=np.float32)
    peaks = np.maximum(topic_word.max(axis=0), np.finfo(np.float64).tiny)  # [V] keeps words of tiny mass within float32
    for k in range(K):
        phi[:, k] = topic_word[k] / peaks
    return seat(words, documents, frozen(np.arange(V), np.int32), phi, alpha, derive(key, 1), threads)


def common_rows(words: I32, V: int, most: int) -> I32:
    """A row for each word [V]; if there are more words than rows, the rarest share the last."""
    if most >= V:
        return frozen(np.arange(V), np.int32)
    rank = np.empty(V, dtype=np.int32)
    rank[np.argsort(-frequency(words, V), kind="stable")] = np.arange(V)
    return frozen(np.minimum(rank, most - 1), np.int32)


def seat(words: I32, documents: I64, rows: I32, phi: F32, alpha: F64, key: np.uint64, threads: int = 1) -> I32:
    """Draw topics [N] from left to right, each given phi and the topics of the tokens before it in the document.

    p(z_i = k) ∝ (C_dk + alpha_k) phi_kw, C_dk over the tokens before i; word w has row rows[w] of phi [n, padded K].
    Far nearer to what sampling settles on than draws from the document's theta, which are too diffuse.
    """
    z = np.empty(len(words), dtype=np.int32)
    prior = padded_with_zeros(alpha)
    jobs = [
        (words, documents, first, last, rows, phi, prior, len(alpha), key, z)
        for first, last in blocks.cuts(documents, threads)
    ]
    blocks.run(seat_block, jobs, threads)
    return z


@kernel
def seat_block(
    words: I32, documents: I64, first: int, last: int, rows: I32, phi: F32, alpha: F32, K: int, key: np.uint64, z: I32
) -> None:
    """Draw the topics of documents first..last-1, from left to right."""
    weight = alpha.copy()  # C_dk + alpha_k
    running = np.empty(alpha.shape[0], dtype=np.float32)
    for d in range(first, last):
        for i in range(documents[d], documents[d + 1]):
            anywhere = int(bits(key, ~np.uint64(i)) % np.uint64(K))
            z[i] = draw(weight, phi, rows[words[i]], running, uniform32(key, np.uint64(i)), anywhere)
            weight[z[i]] += np.float32(1.0)
        for i in range(documents[d], documents[d + 1]):
            weight[z[i]] = alpha[z[i]]


@kernel
def descend(documents: I64, z: I32, parents: int, K: int, key: np.uint64) -> None:
    """Replace parent topics by children k = parent (mod parents), one of each parent in a document."""
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            children = np.uint64((K - 1 - z[i]) // parents + 1)
            z[i] += parents * np.int64(bits(key, np.uint64(d * parents + z[i])) % children)
