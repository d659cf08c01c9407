"""How FTM merges local models by default (ours, in place of iFTM's Algorithms 3 and 4): topics are matched one to one.

Algorithm 3 joins topics by chains: each link may be similar enough while the ends are not, so that the topics of
SentenceLDA, whose general words are alike, end in a few heaps. Here each party in turn is matched with the global
topics so far: the one-to-one assignment of largest total similarity (29), of which the pairs that reach xi merge. So a
global topic takes at most one topic of each party, there are never fewer than the largest party has, and each party's
next start is simply the global topics that its own went into.

Nobody knows a good xi beforehand: it depends on the model, the number of topics and the words. Unless xi is given, it
is calibrated. How similar different topics are is known: those of one party are different. How much that is to be
trusted depends on whether the parties draw on the same subjects, which their mean topics show: by the distance that
`ALIKE` bounds, random parts of a collection are nearer than parts by subject, unless subjects overlap as diseases do
(`python -m benchmarks.ftm.likeness`). Where alpha is learned, some topics are small, and what few tokens show would
count as much as the rest: there a topic counts by the root of its size. By the size itself those that one long document
fills would count for too much.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.methods.ftm.merging import Merged, merge_sets
from tertulia.metrics.similarity import Tops, top_words_sparse, weighted_jaccard

XI = 0.3  # the papers' threshold: what topics of unlike parties must reach at least
FREQUENT = 500  # words by which parties are compared: rarer ones differ by chance
_ODD = 10  # one of so many is left out, those that differ most: one long odd document may fill a topic with its words
ALIKE = 0.06  # parties are alike that are no farther apart


class MergeWarning(UserWarning):
    """Merging topics did nothing, or too much."""


def align(
    models: Sequence[tuple[Array, int]], xi: float | None, top: int, topic_sizes: Sequence[Array] | None = None
) -> Merged:
    """Merge local models (topic-word rows, number of documents) one after the other, their topics one to one.

    Mean topics weigh topics by their sizes, if these are given.
    """
    if not models:
        raise ValueError("align needs at least one model")
    sizes = [len(M_p) for M_p, _ in models]
    rows = np.concatenate([M_p for M_p, _ in models])
    party_of = np.repeat(np.arange(len(models)), sizes)
    weights = np.array([float(documents) for _, documents in models])
    of_parties: Sequence[Array | None] = topic_sizes or [None] * len(models)
    means = np.array([mean_topic(M_p, own) for (M_p, _), own in zip(models, of_parties, strict=True)])
    scale = _Scale(means, [top_words_sparse(M_p, top) for M_p, _ in models], weights)
    part_of = np.empty(0, np.int64)  # the global topic that each local one went into
    for p, K in enumerate(sizes):
        known = len(part_of)
        T = int(part_of.max(initial=-1)) + 1
        place = np.full(K, -1)
        if T:
            M = merge_sets(rows[:known], weights[party_of[:known]], part_of, np.arange(T))
            rho = weighted_jaccard(scale.tops[p], top_words_sparse(M, top))  # [K_p, T]
            members = [tuple(party_of[:known][part_of == z].tolist()) for z in range(T)]
            needed = {who: xi or scale.threshold(p, who) for who in set(members)}
            rho[rho < np.array([needed[who] for who in members])] = 0.0
            k, z = _best_pairs(rho)
            place[k] = np.where(rho[k, z] > 0, z, -1)
        new = place < 0
        place[new] = T + np.arange(new.sum())
        part_of = np.concatenate([part_of, place])
    M = merge_sets(rows, weights[party_of], part_of, np.arange(part_of.max() + 1))
    return Merged(M, np.bincount(part_of, weights[party_of]).astype(np.float64), part_of)


class _Scale:
    """What is known of how similar topics are: within each party, and between the parties' mean topics."""

    def __init__(self, means: F64, tops: list[Tops], weights: F64) -> None:
        self.means = means  # [parties, V]
        self.tops = tops
        self.weights = weights
        self.within = [similarities_within(own) for own in tops]

    def threshold(self, p: int, members: tuple[int, ...]) -> float:
        """The xi of party p's topics and a global topic that some parties' topics went into.

        Topics of alike parties are one unless they are less similar than any two neighbours within a party. Topics of
        other parties are one only if they are more similar than any two within a party, and than the papers' xi asks.
        """
        within = np.concatenate([self.within[r] for r in (p, *members)])
        if not len(within):
            return XI
        others = np.average(self.means[[*members]], axis=0, weights=self.weights[[*members]])
        return float(within.min() if are_alike(self.means[p], others) else max(within.max(), XI))


def similarities_within(own: Tops) -> F64:
    """How similar different topics of a party are, when each is matched one to one with another than itself."""
    K = len(own.indices)
    if K < 2:
        return np.empty(0)
    rho = weighted_jaccard(own, own)
    np.fill_diagonal(rho, -K)
    return np.asarray(rho[_best_pairs(rho)])


def _best_pairs(rho: F64) -> tuple[I64, I64]:
    """Rows and columns, each at most once, whose similarities add up to the most."""
    from scipy.optimize import linear_sum_assignment  # a sixth of all that `import` takes, and few need it

    rows, columns = linear_sum_assignment(rho, maximize=True)
    return rows, columns


def mean_topic(M_p: Array, sizes: Array | None) -> F64:
    """The mean of topics [K, V]; of given sizes [K], each counts by the root of its own.

    >>> mean_topic(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, 4])).round(3)
    array([0.333, 0.667])
    """
    if sizes is None or not sizes.any():
        return np.asarray(M_p.mean(axis=0, dtype=np.float64))
    return np.asarray(np.average(M_p.astype(np.float64), axis=0, weights=np.sqrt(sizes)))


def are_alike(mean_p: F64, mean_r: F64) -> bool:
    """Whether two mean topics are near."""
    return distance(mean_p, mean_r) <= ALIKE


def distance(mean_p: F64, mean_r: F64) -> float:
    """How far apart two mean topics are: squared Hellinger distance over words that are frequent, without the odd ones.

    >>> round(distance(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])), 3)
    0.5
    """
    means = np.array([mean_p, mean_r])
    means = means[:, np.argsort(-means.sum(axis=0), kind="stable")[:FREQUENT]]
    roots = np.sqrt(means / means.sum(axis=1, keepdims=True))
    apart = np.sort((roots[0] - roots[1]) ** 2 / 2.0)
    return float(apart[: len(apart) - len(apart) // _ODD].sum())


def warn_of_merge(topics: int, sizes: Sequence[int]) -> None:
    """Say so where a merge ends with fewer topics than the smallest party has, or with all of them side by side."""
    if topics < min(sizes):
        warnings.warn(
            f"merging left {topics} topics, fewer than the smallest party's {min(sizes)}: unlike topics were chained "
            "together. Leave `merge` and `min_similarity` at their defaults, or take `Consensus`",
            MergeWarning,
            stacklevel=3,
        )
    elif len(sizes) > 1 and topics == sum(sizes):
        warnings.warn(
            f"merging joined no topics: the shared model is all {topics} topics of the parties side by side. If the "
            "parties are alike, lower `min_similarity`, or take `Consensus`, which gives as many topics as asked for",
            MergeWarning,
            stacklevel=3,
        )
