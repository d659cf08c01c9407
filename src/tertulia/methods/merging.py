"""How a server merges models that differ (iFTM section 3.2): Algorithm 3, integrate, and Algorithm 4, compose.

Topics are alike when the weighted Jaccard similarity (29) of their top-L words reaches xi.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from tertulia.arrays import F64, Array
from tertulia.metrics.similarity import top_words_sparse, weighted_jaccard


def integrate(models: Iterable[tuple[Array, int]], xi: float, top: int) -> tuple[Array, F64]:
    """Algorithm 3: merge local models (topic-word matrix, number of documents), one after the other.

    The result depends on the order, which is the caller's. It starts from an empty global model: carrying the last
    round's over would count data twice. Each set of similar topics becomes its data-weighted mean; its weight is the
    sum of theirs.
    """
    M, weights = None, np.empty(0)
    for M_p, documents in models:
        M_B = M_p if M is None else np.concatenate([M, M_p])  # line 2
        weights = np.concatenate([weights, np.full(len(M_p), float(documents))])
        tops = top_words_sparse(M_B, top)
        M, weights = merge_sets(M_B, weights, union_find(weighted_jaccard(tops, tops) >= xi))
    if M is None:
        raise ValueError("integrate needs at least one model")
    return M, weights


def union_find(redundant: Array) -> Array:
    """The set of each topic: topics linked by a chain of redundant pairs share one, numbered by first appearance."""
    parent = np.arange(len(redundant))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in np.argwhere(np.triu(redundant, 1)):
        a, b = sorted((root(i), root(j)))
        parent[b] = a  # the smaller index leads, so that sets keep the topics' order
    return np.unique([root(i) for i in range(len(parent))], return_inverse=True)[1]


def merge_sets(M: Array, weights: F64, sets: Array) -> tuple[Array, F64]:
    """Lines 12-17: each set's data-weighted mean distribution."""
    total: F64 = np.bincount(sets, weights).astype(np.float64)  # [T]
    merged = np.zeros((len(total), M.shape[1]))
    np.add.at(merged, sets, M * weights[:, None])
    return (merged / total[:, None]).astype(M.dtype), total


def compose(M: Array, M_p: Array, xi: float, top: int, *, literal: bool = False) -> Array:
    """Algorithm 4: a new local model, in which similar global topics replace the party's own.

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


def cluster(M: Array, weights: F64, K: int) -> tuple[Array, F64]:
    """Merge topics into K of them: Ward's clustering of their square roots, that is, by Hellinger distance.

    Union-find chains unlike topics together as xi falls, and leaves their number open; this does neither. Each cluster
    becomes its weighted mean.
    """
    if len(M) <= K:
        return M, weights
    roots = np.sqrt(M, dtype=np.float32)
    squared = np.maximum(2.0 - 2.0 * (roots @ roots.T).astype(np.float64), 0.0)  # |a - b|^2 of unit vectors
    distances = np.sqrt(squared[np.triu_indices(len(M), 1)])
    sets = fcluster(linkage(distances, "ward"), K, "maxclust")
    return merge_sets(M, weights, np.unique(sets, return_inverse=True)[1])
