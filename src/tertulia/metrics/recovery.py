"""Recovery of true documents and topics, and distance to another model's topics: the scores of gFedNTM (2022).

The similarity of two distributions is 1 - H² = sum of sqrt(p q), H the Hellinger distance (4).
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import InputError
from tertulia.metrics.similarity import top_words_sparse

_BLOCK = 1000


def hellinger_similarity(a: Array, b: Array) -> F64:
    """Compare all pairs of rows, [Na, Nb]: 1 for equal distributions, 0 for disjoint ones.

    >>> hellinger_similarity(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])).round(3)
    array([[1.   , 0.707, 0.   ]])
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(f"distributions {a.shape} and {b.shape} cannot be compared: give [n, same length]")
    similarity: F64 = np.sqrt(a.astype(np.float64)) @ np.sqrt(b.astype(np.float64)).T
    return similarity


def dss(true: Array, inferred: Array) -> float:
    """Document similarity score (5), lower is better: the error of the similarities between documents.

    Models may have different topics, because only similarities between documents are compared. The sum over all pairs
    is divided by the number of documents.
    """
    D = len(true)
    if len(inferred) != D or D < 2:
        raise InputError(f"{D} true and {len(inferred)} inferred documents: both must be the same, at least 2")
    total = 0.0
    for start in range(0, D, _BLOCK):  # blocks: D x D may not fit
        rows = slice(start, start + _BLOCK)
        gap = np.abs(hellinger_similarity(true[rows], true) - hellinger_similarity(inferred[rows], inferred))
        gap[np.arange(len(gap)), np.arange(start, start + len(gap))] = 0.0
        total += float(gap.sum())
    return total / D


def tss(true: Array, inferred: Array) -> float:
    """Topic similarity score (6), at best the number of true topics: each takes its most similar inferred one."""
    return float(hellinger_similarity(true, inferred).max(axis=1).sum())


def amwmd(topics: Array, others: Array, vectors: Array, top: int = 10, unit: bool = False) -> float:
    """Average minimum Word Mover's Distance (7) from each topic to its nearest among others, by their top words.

    `vectors` [V, d] are word vectors; with `unit` each is first divided by its length, as gensim's `wmdistance` does by
    default. Words without a vector (all zero) are skipped. All top words have the same weight. (7) lacks the 1/K of an
    average; we divide.
    """
    if unit:
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.where(lengths > 0, lengths, 1.0)
    mine, theirs = (_lists(matrix, vectors, top) for matrix in (topics, others))
    distances = np.array([[_wmd(vectors[a], vectors[b]) for b in theirs] for a in mine])
    return float(distances.min(axis=1).mean())


def _lists(topic_word: Array, vectors: Array, top: int) -> list[Array]:
    known = np.linalg.norm(vectors, axis=1) > 0
    masked = np.where(known, topic_word, 0.0)
    lists = [row[row >= 0] for row in top_words_sparse(masked, top).indices]
    lists = [row[known[row]] for row in lists]
    if not all(len(row) for row in lists):
        raise InputError("a topic has no top word with a vector: use vectors that know the vocabulary")
    return lists


def _wmd(a: Array, b: Array) -> float:
    """Word Mover's Distance of two lists of words; for lists of equal length it is an assignment problem."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    cost = cdist(a, b)
    n = np.lcm(len(a), len(b))  # for unequal lists, split words into parts until both have n
    cost = cost.repeat(n // len(a), axis=0).repeat(n // len(b), axis=1)
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].mean())
