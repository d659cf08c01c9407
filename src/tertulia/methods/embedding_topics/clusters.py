"""What EmbeddingTopics computes: where clusters start, what a unit adds to a sum, and centroids from sums.

Clusters are spherical (Dhillon, Modha 2001): a document belongs to the centroid of largest cosine. A unit's part of a
sum is scaled to an L2 norm of at most 1 and rounded towards 0 on the grid, so no unit moves a sum by more than 2^bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tertulia._arrays import F32, F64, I64, Array
from tertulia.corpus import Corpus

_STARTS, _STEPS = 5, 20  # tries, and rounds of each, of clusters of words
_TINY = 1e-9


class Encoded(NamedTuple):
    """A party's documents, those of one unit together."""

    vectors: F32  # [D, d] 0 where there is nothing to encode
    words: sparse.csr_array  # [D, V] each row the set of a document's words, at length 1
    units: I64  # [D] the number of a document's unit
    n_units: int
    periods: I64  # [D] -1: in none


def encoded(corpus: Corpus, starts: I64, vectors: F32, periods: I64 | None = None) -> Encoded:
    """Collect what the sums are made from."""
    shape = corpus.n_documents, len(corpus.vocabulary)
    counts = sparse.csr_array((np.ones(corpus.n_tokens), corpus.words.copy(), corpus.documents.copy()), shape=shape)
    counts.sum_duplicates()
    different = np.diff(counts.indptr)
    counts.data = np.repeat(1.0 / np.sqrt(np.maximum(different, 1)), different)
    sizes = np.diff(starts)
    places = np.full(corpus.n_documents, -1) if periods is None else periods
    return Encoded(vectors, counts, np.repeat(np.arange(len(sizes)), sizes), len(sizes), places)


# --- what a unit adds -------------------------------------------------------------------------------------------------


def sum_of_words(found: Encoded, bits: int) -> I64:
    """Sum the units' clipped weights of words, in steps of 2^-bits [V]."""
    nowhere = np.zeros(len(found.units), np.int64)
    return np.asarray(_clipped(found.words, found.units, nowhere, 1, found.n_units, bits)[0])


def sum_of_vectors(found: Encoded, bits: int) -> I64:
    """Sum the units' clipped vectors, in steps of 2^-bits [d]."""
    nowhere = np.zeros(len(found.units), np.int64)
    return np.asarray(_clipped(sparse.csr_array(found.vectors), found.units, nowhere, 1, found.n_units, bits)[0])


def sums_by_cluster(found: Encoded, vectors: F32, labels: I64, K: int, bits: int) -> I64:
    """Sum the units' clipped vectors by cluster, in steps of 2^-bits [K, d]."""
    if found.n_units == len(found.units):  # a document is a unit: no group to add up, and nothing is sparse
        steps = np.trunc(_shortened(vectors.astype(np.float64)) * 2.0**bits).astype(np.int64)
        total = np.zeros((K, steps.shape[1]), np.int64)
        np.add.at(total, labels[labels >= 0], steps[labels >= 0])
        return total
    return _clipped(sparse.csr_array(vectors), found.units, labels, K, found.n_units, bits)


def words_by_cluster(found: Encoded, labels: I64, K: int, bits: int) -> I64:
    """Sum the units' clipped weights of words by cluster, in steps of 2^-bits [K, V]."""
    return _clipped(found.words, found.units, labels, K, found.n_units, bits)


def sizes_of(found: Encoded, labels: I64, K: int, bits: int) -> I64:
    """Sum the units' clipped numbers of documents by cluster, in steps of 2^-bits [K]."""
    ones = sparse.csr_array(np.ones((len(labels), 1)))
    return _clipped(ones, found.units, labels, K, found.n_units, bits)[:, 0]


def periods_by_cluster(found: Encoded, labels: I64, K: int, periods: int, bits: int) -> I64:
    """Sum the units' clipped numbers of documents by cluster and period, in steps of 2^-bits [K, P]."""
    dated = np.flatnonzero(found.periods >= 0)
    shape = len(labels), periods
    ones = sparse.csr_array((np.ones(len(dated)), (dated, found.periods[dated])), shape=shape)
    return _clipped(ones, found.units, labels, K, found.n_units, bits)


def _clipped(rows: Any, units: I64, labels: I64, K: int, n_units: int, bits: int) -> I64:
    """Add up rows by unit and cluster, clip each unit's numbers together to a norm of 1, and add up by cluster.

    Documents with the label -1 are in no cluster.
    """
    kept = np.flatnonzero(labels >= 0)
    places = units[kept] * K + labels[kept]
    groups, group = np.unique(places, return_inverse=True)
    total = np.zeros((K, rows.shape[1]), np.int64)
    if not len(groups):
        return total
    ones = np.ones(len(kept))
    each = sparse.csr_array((ones, (group, np.arange(len(kept)))), shape=(len(groups), len(kept))) @ rows[kept]
    squares = np.bincount(groups // K, np.asarray(each.multiply(each).sum(axis=1)).ravel(), minlength=n_units)
    scale = 2.0**bits / np.maximum(np.sqrt(squares) * (1.0 + 1e-12), 1.0)
    each = sparse.csr_array(each)
    each.data = np.trunc(each.data * np.repeat(scale[groups // K], np.diff(each.indptr)))
    by = sparse.csr_array((np.ones(len(groups)), (groups % K, np.arange(len(groups)))), shape=(K, len(groups)))
    return np.asarray((by @ each).toarray().astype(np.int64))  # sums of whole numbers below 2^53 are exact


def _shortened(vectors: F64) -> F64:
    length = np.linalg.norm(vectors, axis=1, keepdims=True) * (1.0 + 1e-12)
    return np.asarray(vectors / np.maximum(length, 1.0))


# --- clusters ---------------------------------------------------------------------------------------------------------


def unit_rows(vectors: Array) -> F64:
    """Scale rows to unit length; rows of 0 stay."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.where(length > _TINY, vectors / np.maximum(length, _TINY), 0.0))


def around(vectors: F32, centre: Array) -> F32:
    """Return the directions of documents from their common centre; documents without a vector stay 0."""
    moved = unit_rows(vectors - centre.astype(np.float32))
    moved[~vectors.any(axis=1)] = 0.0
    return moved.astype(np.float32)


def nearest(vectors: F32, centroids: Array) -> I64:
    """Return the centroid of largest cosine of each document, -1 for a document without a vector [D]."""
    found = (vectors @ centroids.T.astype(np.float32)).argmax(axis=1)
    return np.where(vectors.any(axis=1), found, -1).astype(np.int64)


def first_centroids(vectors: F32, weights: F64, K: int, seed: int, seeds: Sequence[I64] = ()) -> F64:
    """Cluster words by their vectors, each of some weight; the first clusters are those of seed words [K, d].

    The best of a few starts counts, by the weighted mean cosine. Without words, centroids are random directions.
    """
    rng = np.random.default_rng(seed)
    fixed = unit_rows(np.array([vectors[places].mean(axis=0) for places in seeds])) if len(seeds) else None
    heavy = np.flatnonzero((weights > 0) & vectors.any(axis=1))
    free = K - len(seeds)
    if len(heavy) < free:
        width = vectors.shape[1]
        others = unit_rows(rng.normal(size=(free, width)))
        return others if fixed is None else np.concatenate([fixed, others])
    x, w = unit_rows(vectors[heavy]), weights[heavy]
    tries = [_cluster(x, w, free, fixed, rng) for _ in range(_STARTS if free else 1)]
    return max(tries, key=lambda found: float((w * (x @ found.T).max(axis=1)).sum()))


def _cluster(x: F64, w: F64, free: int, fixed: F64 | None, rng: np.random.Generator) -> F64:
    chosen = x[rng.choice(len(x), free, replace=False, p=w / w.sum())] if free else np.zeros((0, x.shape[1]))
    for _ in range(_STEPS if free else 0):
        every = chosen if fixed is None else np.concatenate([fixed, chosen])
        labels = (x @ every.T).argmax(axis=1) - (len(every) - free)
        mine = labels >= 0
        sums = np.zeros_like(chosen)
        np.add.at(sums, labels[mine], x[mine] * w[mine, None])
        chosen = np.where(np.linalg.norm(sums, axis=1, keepdims=True) > _TINY, unit_rows(sums), chosen)
    return chosen if fixed is None else np.concatenate([fixed, chosen])


def centroids_of(sums: Array, first: F64, seeded: int = 0) -> F64:
    """Return the directions of sums; a cluster without any document has its first centroid.

    The first `seeded` ones stay half way between their documents and their seed words, else they would be about
    something else wherever documents have nothing of their subjects.
    """
    found = unit_rows(sums.astype(np.float64))
    found = np.where(found.any(axis=1, keepdims=True), found, first)
    found[:seeded] = unit_rows(found[:seeded] + first[:seeded])
    return found


def places_of(seeds: Mapping[str, Sequence[str]], words: Sequence[str]) -> list[I64]:
    """Return the places of each topic's seed words on a list."""
    index = {word: v for v, word in enumerate(words)}
    forms = ([index.get(word, index.get(word.lower(), -1)) for word in own] for own in seeds.values())
    return [np.array([v for v in own if v >= 0], np.int64) for own in forms]
