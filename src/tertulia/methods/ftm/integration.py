"""The merging of different local models (iFTM section 3.2): Algorithm 3, integrate, and Algorithm 4, compose.

Topics are alike when the weighted Jaccard similarity (29) of their top-L words reaches xi.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from tertulia._arrays import F64, Array
from tertulia.methods.common.topic_clusters import Rows, merge_sets, totals
from tertulia.metrics.similarity import Tops, similar_pairs, top_words_sparse, weighted_jaccard


class Merged(NamedTuple):
    """The global model that all parties' topics are merged into."""

    topic_word: Rows  # [T, V] M*
    weights: F64  # [T] documents behind each global topic
    part_of: Array  # [sum of all K_p] the global topic that each local one went into, party after party


def keep_supported(merged: Merged, sizes: Sequence[int], least: int) -> Array:
    """Find the global topics that hold topics of `least` parties or more; `sizes` are parties' numbers of topics."""
    party_of = np.repeat(np.arange(len(sizes)), sizes)
    behind = np.zeros((merged.topic_word.shape[0], len(sizes)), dtype=bool)
    behind[merged.part_of, party_of] = True
    return np.asarray(behind.sum(axis=1) >= least)


def integrate(models: Sequence[tuple[Rows, int]], xi: float, top: int) -> Merged:
    """Merge local models (topic-word rows, number of documents) one after the other (Algorithm 3).

    The result depends on the order, which is the caller's. It starts from an empty global model: carrying the last
    round's over would count data twice. Each set of similar topics becomes its data-weighted mean; its weight is the
    sum of theirs. Rows may be dense or sparse.

    Two sets that are not similar stay so until one of them grows, so only new and just grown ones are compared. And a
    mean of means, weighted by data, is the mean of all members, so the rows are added up once, at the end.
    """
    if not models:
        raise ValueError("integrate needs at least one model")
    rows = _stack([M_p for M_p, _ in models])
    weights = np.repeat([float(documents) for _, documents in models], [M_p.shape[0] for M_p, _ in models])
    bounds = np.cumsum([0, *(M_p.shape[0] for M_p, _ in models)])
    leader = np.arange(rows.shape[0])  # the first topic of the set that each topic belongs to
    size = (len(leader), min(top, rows.shape[1]))
    tops = Tops(np.empty(size, np.int32), np.empty(size))
    grown = np.empty(0, np.int64)
    for start, stop in pairwise(bounds):  # line 2: concatenate
        fresh = np.concatenate([grown, np.arange(start, stop)])
        means = merge_sets(rows, weights, leader, fresh)
        tops.indices[fresh], tops.values[fresh] = top_words_sparse(means, top)
        sets = np.unique(leader[:stop])
        similar = similar_pairs(_some(tops, sets), _some(tops, fresh), xi)  # lines 3-11; the fewer are indexed
        joined = union_find(stop, sets[similar.rows], fresh[similar.columns])[leader[:stop]]
        grown = np.unique(joined[joined != leader[:stop]])
        leader[:stop] = joined
    sets = np.unique(leader)
    return Merged(merge_sets(rows, weights, leader, sets), totals(leader, weights, sets), np.searchsorted(sets, leader))


def union_find(n: int, left: Array, right: Array) -> Array:
    """Return, for each of n topics, the first topic that a chain of redundant pairs links it to."""
    links = sparse.coo_array((np.ones(len(left)), (left, right)), (n, n))
    component = connected_components(links, directed=False)[1]
    first = np.unique(component, return_index=True)[1]
    return np.asarray(first[component])


def _stack(models: list[Rows]) -> Rows:
    if any(sparse.issparse(M_p) for M_p in models):
        return sparse.csr_array(sparse.vstack([sparse.csr_array(M_p) for M_p in models]))
    return np.concatenate(models)


def _some(tops: Tops, which: Array) -> Tops:
    return Tops(tops.indices[which], tops.values[which])


def compose(M: Array, M_p: Array, xi: float, top: int, *, literal: bool = False) -> Array:
    """Compose a new local model, in which similar global topics replace the party's own (Algorithm 4).

    Local topics are scanned in index order; a global topic serves at most one of them. As printed, line 7 takes the
    most similar global topic out of the race even when it is below xi and replaces nothing; that only wastes topics,
    so it happens in `literal` mode alone.
    """
    rho = weighted_jaccard(top_words_sparse(M_p, top), top_words_sparse(M, top))  # [K_p, T]
    composed = M_p.copy()
    for k in range(len(M_p)):
        z = int(np.argmax(rho[k]))
        similar = rho[k, z] >= xi
        if similar:
            composed[k] = M[z]
        if similar or literal:
            rho[:, z] = -1.0
    return composed


def accept(composed: Array, M_p: Array, xi: float, top: int) -> Array:
    """Accept a composed model as a stricter party does: topics less similar than xi to its own stay its own."""
    rho = np.diag(weighted_jaccard(top_words_sparse(M_p, top), top_words_sparse(composed, top)))
    return np.where((rho >= xi)[:, None], composed, M_p)
