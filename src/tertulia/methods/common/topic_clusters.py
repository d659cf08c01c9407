"""Topics merged into fewer: the weighted means of sets of topics, and clusters by Hellinger distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tertulia._arrays import F64, Array

Rows = Any  # topics [K, V], a numpy array or a SciPy sparse one


def merge_sets(rows: Rows, weights: F64, leader: Array, sets: Array) -> Rows:
    """Compute the weighted mean distribution of some sets, which are named by their leaders (iFTM, Algorithm 3)."""
    member = np.flatnonzero(np.isin(leader, sets))
    place = np.searchsorted(sets, leader[member])
    share = weights[member] / np.bincount(place, weights[member], len(sets))[place]
    average = sparse.csr_array((share, (place, np.arange(len(member)))), (len(sets), len(member)))
    return (average @ rows[member]).astype(rows.dtype)


def totals(leader: Array, weights: F64, sets: Array) -> F64:
    """Compute the weight of each of some sets."""
    return np.bincount(leader, weights)[sets].astype(np.float64)


def cluster(M: Array, weights: F64, K: int) -> tuple[Array, F64]:
    """Merge topics into K of them: Ward's clustering of their square roots, that is, by Hellinger distance.

    Union-find chains unlike topics together as xi falls, and leaves their number open; this does neither. Each cluster
    becomes its weighted mean.
    """
    if len(M) <= K:
        return M, weights
    number = cluster_of(M, K)
    kept = np.arange(number.max() + 1)
    return merge_sets(M, weights, number, kept), totals(number, weights, kept)


def cluster_of(M: Array, K: int) -> Array:
    """Return the cluster of each topic; clusters are numbered in the order of their first topics."""
    if len(M) <= K:
        return np.arange(len(M))
    from scipy.cluster.hierarchy import fcluster, linkage  # only a server needs it: parties start without

    roots = np.sqrt(M, dtype=np.float32)
    squared = np.maximum(2.0 - 2.0 * (roots @ roots.T).astype(np.float64), 0.0)  # |a - b|^2 of unit vectors
    distances = np.sqrt(squared[np.triu_indices(len(M), 1)])
    sets = fcluster(linkage(distances, "ward"), K, "maxclust")
    _, first, number = np.unique(sets, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
