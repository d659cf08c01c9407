"""Theta of unseen documents under fixed topics, by EM: the MAP estimate under a Dirichlet(alpha + 1) prior.

Each iteration is theta_k <- alpha_k + sum_i theta_k phi_kw_i / sum_j theta_j phi_jw_i, normalised.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import check_alpha, check_documents, check_topics
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.simd import add, dot, pad_with_zeros, total
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.dense import frequency

_WORDS = 64  # words at a time when phi is turned from topic-major to word-major: their rows fit the cache
_FAINT = 1e-20  # a share of a word that cannot matter; numbers near the end of float32 cost a hundred others


def theta(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, iterations: int = 20, threads: int = 1
) -> F64:
    """Topic shares [D, K] of documents; words that no topic knows are ignored, empty documents get alpha's mean.

    `words` [N] are token indices into the columns of `topic_word` [K, V]; `documents` [D+1] are token offsets.
    """
    topic_word = check_topics(topic_word)
    K, V = topic_word.shape
    words, documents = check_documents(words, documents, V)
    alpha = pad_with_zeros(check_alpha(alpha, K))
    if iterations < 1 or threads < 1:
        raise InputError(f"iterations = {iterations}, threads = {threads}: fold-in needs at least 1 of each")
    phi, rows = _phi_by_word(topic_word, words, threads)
    shares = np.empty((len(documents) - 1, K))
    jobs = [
        (words, documents, first, last, rows, phi, alpha, iterations, shares)
        for first, last in parallel.cuts(documents, threads)
    ]
    parallel.run(_fold_block, jobs, threads)
    return shares


def _phi_by_word(topic_word: Array, words: I32, threads: int) -> tuple[F32, I32]:
    """The rows [words in use, padded K] of phi, each scaled to a maximum of 1 (EM ignores the scale), and each word's.

    The scale keeps words of tiny mass within float32; a word without any mass keeps a row of zeros.
    """
    K, V = topic_word.shape
    used = np.flatnonzero(frequency(words, V))
    row = np.zeros(V, dtype=np.int32)
    row[used] = np.arange(len(used))
    phi = np.zeros((len(used), padded_width(K)), dtype=np.float32)
    source = freeze(topic_word, topic_word.dtype if topic_word.dtype in (np.float32, np.float64) else np.float64)
    jobs = [(source, used, start, min(start + _WORDS, len(used)), phi) for start in range(0, len(used), _WORDS)]
    parallel.run(_turn_block, jobs, threads)
    return phi, row


@kernel
def _turn_block(topic_word: F64, used: I64, first: int, last: int, phi: F32) -> None:
    """Rows first..last-1 of phi from the columns of topic_word [K, V]."""
    K = topic_word.shape[0]
    peak = np.zeros(last - first)
    for k in range(K):
        for j in range(first, last):
            peak[j - first] = max(peak[j - first], topic_word[k, used[j]])
    for k in range(K):
        for j in range(first, last):
            share = topic_word[k, used[j]] / peak[j - first] if peak[j - first] > 0.0 else 0.0
            phi[j, k] = share if share >= _FAINT else 0.0


@kernel
def _fold_block(
    words: I32, documents: I64, first: int, last: int, rows: I32, phi: F32, alpha: F32, iterations: int, shares: F64
) -> None:
    K = shares.shape[1]
    theta = np.empty(alpha.shape[0], dtype=np.float32)
    pull = np.empty(alpha.shape[0], dtype=np.float32)
    place = np.full(phi.shape[0], -1, dtype=np.int64)  # of a row among those of the document
    longest = 0
    for d in range(first, last):
        longest = max(longest, documents[d + 1] - documents[d])
    mine, count = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.float32)
    for d in range(first, last):
        n = _distinct(words, documents[d], documents[d + 1], rows, place, mine, count)
        theta[:] = 1.0
        theta[K:] = 0.0
        for _ in range(iterations):
            pull[:] = 0.0
            for j in range(n):
                mass = dot(theta, phi, mine[j])
                if mass > 0.0:
                    add(pull, count[j] / mass, phi, mine[j])
            for k in range(alpha.shape[0]):
                theta[k] = alpha[k] + theta[k] * pull[k]
        whole = total(theta)
        for k in range(K):
            shares[d, k] = theta[k] / whole


@kernel
def _distinct(words: I32, start: int, stop: int, rows: I32, place: I64, mine: I64, count: F32) -> int:
    """The distinct rows of a document's words, and how often each occurs; return their number."""
    n = 0
    for i in range(start, stop):
        r = rows[words[i]]
        if place[r] < 0:
            place[r], mine[n], count[n] = n, r, 0.0
            n += 1
        count[place[r]] += np.float32(1.0)
    for j in range(n):
        place[mine[j]] = -1
    return n
