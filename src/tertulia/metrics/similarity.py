"""Similarity of topics: weighted Jaccard on top words, by which FTM merges, and cosine matching with true topics.

Jiang et al. 2019, "Federated Topic Modeling" (CIKM), eq. 17; Jiang et al. 2021, "Industrial Federated Topic Modeling"
(TIST), eq. 29.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from tertulia._arrays import F64, I32, Array
from tertulia.errors import InputError
from tertulia.kernels.core.jit import freeze
from tertulia.metrics import _jaccard


class Tops(NamedTuple):
    """The top words of each topic, from large to small; topics with fewer words end in index -1, value 0."""

    indices: I32  # [K, L]
    values: F64  # [K, L]


class Pairs(NamedTuple):
    """Pairs of similar topics, in order of row and column."""

    rows: I32
    columns: I32
    similarity: F64


def top_words_sparse(topic_word: Array | Any, L: int) -> Tops:
    """Find the L words of largest mass of each topic; of equal masses the lower word index comes first.

    `topic_word` is dense [K, V] or a SciPy sparse matrix, whose absent entries are no words of the topic.

    >>> top_words_sparse(np.array([[0.2, 0.5, 0.2, 0.1]]), 2).indices
    array([[1, 0]], dtype=int32)
    """
    if L < 1:
        raise InputError(f"L = {L}: compare topics on at least 1 word")
    if topic_word.ndim != 2:
        raise InputError(f"topic_word has shape {topic_word.shape}: it must be [topics, words]")
    K, V = topic_word.shape
    tops = Tops(np.full((K, min(L, V)), -1, np.int32), np.zeros((K, min(L, V))))
    if sparse.issparse(topic_word):
        rows = sparse.csr_matrix(topic_word, copy=True)
        rows.sum_duplicates()  # sorts the columns too, which the rule for ties needs
        _check(rows.data)
        indptr, columns = freeze(rows.indptr, np.int64), freeze(rows.indices, np.int32)
        _jaccard.top_sparse(indptr, columns, freeze(rows.data, rows.dtype), *tops)
    else:
        _check(topic_word)
        _jaccard.top_dense(freeze(topic_word, topic_word.dtype), *tops)
    return tops


def weighted_jaccard(a: Tops, b: Tops) -> F64:
    """Compare all pairs [Ka, Kb]: sum of min over common top words / (sum of both - sum of min).

    >>> tops = top_words_sparse(np.array([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]]), 2)
    >>> weighted_jaccard(tops, tops).round(2)
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    rho = np.zeros((len(a.indices), len(b.indices)))
    _jaccard.all_pairs(*_left(a), *_right(b), rho)
    return rho


def similar_pairs(a: Tops, b: Tops, at_least: float) -> Pairs:
    """Find the pairs whose weighted Jaccard is at least `at_least` > 0, sorted by row and column.

    It compares only topics that share a top word, and stays cheap for many parties with thousands of topics.
    """
    if not 0 < at_least <= 1:
        raise InputError(f"at_least = {at_least}: it must lie in (0, 1]; for all pairs use weighted_jaccard")
    left, right = _left(a), _right(b)
    n = room = 0
    while n >= room:  # guess the room, and repeat if there were more
        room = max(n + 1, 4 * (len(a.indices) + len(b.indices)))
        out = Pairs(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room))
        n = _jaccard.close_pairs(*left, *right, at_least, out)
    order = np.lexsort((out.columns[:n], out.rows[:n]))
    return Pairs(out.rows[order], out.columns[order], out.similarity[order])


def match(true: Array, found: Array) -> float:
    """Return the mean cosine of true topics with their found partners, under the best one-to-one assignment.

    True topics without a partner, because fewer were found, count 0.
    """
    if true.ndim != 2 or found.ndim != 2 or true.shape[1] != found.shape[1]:
        raise InputError(f"topics {true.shape} and {found.shape} cannot be matched: both must be [topics, same words]")
    cosine = _unit(true) @ _unit(found).T  # [K, K found]
    rows, columns = linear_sum_assignment(cosine, maximize=True)
    return float(cosine[rows, columns].sum() / len(true))


def _left(tops: Tops) -> tuple[Array, Array]:
    return freeze(tops.indices, np.int32), freeze(tops.values, np.float64)


def _right(tops: Tops) -> tuple[Array, Array, Array, Array]:
    """Sort top words by word: the topics' sums [K], where each word's topics start, these topics and their masses."""
    topic, place = np.nonzero((tops.indices >= 0) & (tops.values > 0))
    word, mass = tops.indices[topic, place], tops.values[topic, place]
    order = np.argsort(word, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(word))))
    sums = np.cumsum(tops.values, axis=1)[:, -1]  # added in the kernel's order: a topic is exactly 1 like itself
    return (
        freeze(sums, np.float64),
        freeze(starts, np.int64),
        freeze(topic[order], np.int32),
        freeze(mass[order], np.float64),
    )


def _unit(rows: Array) -> F64:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: F64 = rows / np.where(length > 0, length, 1.0)
    return unit


def _check(values: Array) -> None:
    if not (np.all(np.isfinite(values)) and np.all(values >= 0)):
        raise InputError("topic_word holds negative or non-finite entries: give probabilities or counts")
