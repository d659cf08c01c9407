"""Theta of unseen documents under fixed topics, by EM: the MAP estimate under a Dirichlet(alpha + 1) prior.

Each iteration is theta_k <- alpha_k + sum_i theta_k phi_kw_i / sum_j theta_j phi_jw_i, normalised.
"""

from __future__ import annotations

import numpy as np

from tertulia.arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels import blocks
from tertulia.kernels.check import checked_alpha, checked_documents, checked_topics
from tertulia.kernels.compiled import frozen, kernel, reduction

_WORDS = 4096  # words at a time when phi is turned from topic-major to word-major: bounds the memory
_FAINT = 1e-20  # a share of a word that cannot matter; numbers near the end of float32 cost a hundred others


def theta(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, iterations: int = 20, threads: int = 1
) -> F64:
    """Topic shares [D, K] of documents; words that no topic knows are ignored, empty documents get alpha's mean.

    `words` [N] are token indices into the columns of `topic_word` [K, V]; `documents` [D+1] are token offsets.
    """
    topic_word = checked_topics(topic_word)
    K, V = topic_word.shape
    words, documents = checked_documents(words, documents, V)
    alpha = frozen(checked_alpha(alpha, K), np.float32)
    if iterations < 1 or threads < 1:
        raise InputError(f"iterations = {iterations}, threads = {threads}: fold-in needs at least 1 of each")
    phi, words = _phi_by_word(topic_word, words)
    shares = np.empty((len(documents) - 1, K))
    jobs = [
        (words, documents, first, last, phi, alpha, iterations, shares)
        for first, last in blocks.cuts(documents, threads)
    ]
    blocks.run(_fold_block, jobs, threads)
    return shares


def _phi_by_word(topic_word: Array, words: I32) -> tuple[F32, I32]:
    """The rows [words in use, K] of phi, each scaled to a maximum of 1 (EM ignores the scale), and tokens over them.

    The scale keeps words of tiny mass within float32; a word without any mass keeps a row of zeros.
    """
    used = np.zeros(topic_word.shape[1], dtype=np.bool_)
    used[words] = True
    rank = np.cumsum(used, dtype=np.int32) - np.int32(1)
    columns = np.flatnonzero(used)
    phi = np.empty((len(columns), topic_word.shape[0]), dtype=np.float32)
    for start in range(0, len(columns), _WORDS):
        rows = topic_word[:, columns[start : start + _WORDS]].T.astype(np.float64)
        rows /= np.maximum(rows.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        phi[start : start + _WORDS] = np.where(rows < _FAINT, 0.0, rows)
    return frozen(phi, np.float32), frozen(rank[words], np.int32)


@kernel
def _fold_block(
    words: I32, documents: I64, first: int, last: int, phi: F32, alpha: F32, iterations: int, shares: F64
) -> None:
    theta = np.empty(alpha.shape[0], dtype=np.float32)
    pull = np.empty(alpha.shape[0], dtype=np.float32)
    total = np.float32(0.0)
    for d in range(first, last):
        theta[:] = 1.0
        for _ in range(iterations):
            pull[:] = 0.0
            for i in range(documents[d], documents[d + 1]):
                mass = _dot(theta, phi, words[i])
                if mass > 0.0:
                    _add(pull, phi, words[i], np.float32(1.0) / mass)
            total = _update(theta, alpha, pull)
        for k in range(alpha.shape[0]):
            shares[d, k] = theta[k] / total


@reduction
def _dot(theta: F32, phi: F32, w: int) -> np.float32:
    mass = np.float32(0.0)
    for k in range(theta.shape[0]):
        mass += theta[np.uintp(k)] * phi[np.uintp(w), np.uintp(k)]  # unsigned: no check for negative indices
    return mass


@reduction
def _update(theta: F32, alpha: F32, pull: F32) -> np.float32:
    total = np.float32(0.0)
    for k in range(theta.shape[0]):
        theta[np.uintp(k)] = alpha[np.uintp(k)] + theta[np.uintp(k)] * pull[np.uintp(k)]
        total += theta[np.uintp(k)]
    return total


@reduction
def _add(pull: F32, phi: F32, w: int, scale: np.float32) -> None:
    for k in range(pull.shape[0]):
        pull[np.uintp(k)] += scale * phi[np.uintp(w), np.uintp(k)]
