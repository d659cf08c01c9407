"""FTM's default merge of local models (ours, in place of iFTM's Algorithms 3 and 4): topics are matched one to one.

Algorithm 3 joins topics by chains: each link may be similar enough while the ends are not, so that the topics of
SentenceLDA, whose general words are alike, end in a few large clusters. Here each party in turn is matched with the
global topics so far: the one-to-one assignment of largest total similarity (29), of which the pairs that reach xi
merge. So a global topic takes at most one topic of each party, there are never fewer than the largest party has, and
each party's next start is simply the global topics that its own went into.

Nobody knows a good xi beforehand: it depends on the model, the number of topics and the words. Unless xi is given, it
is calibrated. The topics of one party are different, so they show how similar different topics are. How far xi follows
this depends on whether the parties are alike, that is, draw on the same subjects. A permutation test on their own
topics decides it (`are_alike`), without a bound on any distance: if each subject has a topic at either party, the
parties' mean topics are nearer to each other than those of other divisions of the same topics into two sides, in which
subjects are unevenly spread. Each pair of parties is tested once, when the second of them arrives, because its topics
have not been merged yet: merging makes topics alike.

`python -m benchmarks.ftm.likeness` applies the test to collections that are split at random and by subject. Parties
whose subjects overlap in part, as diseases do, may be judged either way. With fewer than ten topics per party,
topics are so general that parties of different subjects may be taken for alike.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.methods.common.topic_clusters import merge_sets
from tertulia.methods.ftm.integration import Merged
from tertulia.metrics.similarity import Tops, top_words_sparse, weighted_jaccard

XI = 0.3  # the papers' threshold: what topics of unlike parties must reach at least
FREQUENT = 500  # words by which parties are compared: rarer ones differ by chance
DIVISIONS = 99  # other divisions of two parties' topics that alike parties are compared with
NOBODY = np.zeros((0, 0), dtype=bool)  # no parties have been compared yet
_ROUNDING = 1e-12  # divisions whose means are equally near


class MergeWarning(UserWarning):
    """Merging topics did nothing, or too much."""


def align(models: Sequence[tuple[Array, int]], xi: float | None, top: int, alike: Array | None = None) -> Merged:
    """Merge local models (topic-word rows, number of documents) one after the other, their topics one to one.

    Unless xi is given, it is calibrated by which parties are alike [parties, parties]; None: by what these models say.
    """
    if not models:
        raise ValueError("align needs at least one model")
    sizes = [len(M_p) for M_p, _ in models]
    rows = np.concatenate([M_p for M_p, _ in models])
    party_of = np.repeat(np.arange(len(models)), sizes)
    weights = np.array([float(documents) for _, documents in models])
    if alike is None and xi is None:
        alike = compare_parties([party_topics(M_p, None) for M_p, _ in models], NOBODY)
    scale = _Scale(NOBODY if alike is None else alike, [top_words_sparse(M_p, top) for M_p, _ in models], weights)
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


class PartyTopics(NamedTuple):
    """A party's topics, and how much each of them counts where parties are compared."""

    topic_word: Array  # [K_p, V]
    weights: F64  # [K_p] they sum to 1


class _Scale:
    """A scale of similarities: those of topics within each party, and which parties are alike."""

    def __init__(self, alike: Array, tops: list[Tops], documents: F64) -> None:
        self.alike = alike  # [parties, parties]
        self.tops = tops
        self.documents = documents
        self.within = [similarities_within(own) for own in tops]

    def threshold(self, p: int, members: tuple[int, ...]) -> float:
        """Return the xi of party p's topics and a global topic that some parties' topics went into.

        Topics of alike parties are one unless they are less similar than any two neighbours within a party. Topics of
        other parties are one only if they are more similar than any two within a party, and than the papers' xi asks.
        Party p is alike to several if it is to those that hold most of their documents.
        """
        within = np.concatenate([self.within[r] for r in (p, *members)])
        if not len(within):
            return XI
        documents, alike = self.documents[[*members]], self.alike[p, [*members]]
        mostly = documents[alike].sum() > documents.sum() / 2
        return float(within.min() if mostly else max(within.max(), XI))


def similarities_within(own: Tops) -> F64:
    """Measure how similar different topics of a party are, each matched one to one with another topic than itself."""
    K = len(own.indices)
    if K < 2:
        return np.empty(0)
    rho = weighted_jaccard(own, own)
    np.fill_diagonal(rho, -K)
    return np.asarray(rho[_best_pairs(rho)])


def _best_pairs(rho: F64) -> tuple[I64, I64]:
    """Return rows and columns, each at most once, whose similarities have the largest sum."""
    from scipy.optimize import linear_sum_assignment  # a sixth of the time of `import tertulia`, and rarely needed

    rows, columns = linear_sum_assignment(rho, maximize=True)
    return rows, columns


def party_topics(M_p: Array, sizes: Array | None) -> PartyTopics:
    """Weigh topics [K, V] equally or, given sizes [K], by the roots of these.

    Where alpha is learned, some topics are small: with equal weights, their few tokens would count as much as all
    others. With the sizes themselves as weights, a topic that one long document fills would count for too much.

    >>> party_topics(np.eye(2), np.array([1, 4])).weights.round(3)
    array([0.333, 0.667])
    """
    counts = np.ones(len(M_p)) if sizes is None or not sizes.any() else np.sqrt(sizes, dtype=np.float64)
    return PartyTopics(M_p, counts / counts.sum())


def compare_parties(parties: Sequence[PartyTopics], known: Array) -> Array:
    """Return which parties are alike [parties, parties]; `known` holds the result for the first ones."""
    alike = np.eye(len(parties), dtype=bool)
    alike[: len(known), : len(known)] = known
    for r in range(len(known), len(parties)):
        alike[r, :r] = alike[:r, r] = [are_alike(parties[p], parties[r]) for p in range(r)]
    return alike


def are_alike(p: PartyTopics, r: PartyTopics) -> bool:
    """Return whether two parties draw on the same subjects, as far as their topics show.

    They do if the share of divisions with nearer means is at most the share of divisions that only swap topics for
    their counterparts. With few topics that share is large, and such swaps move the means by chance only.
    """
    few, all_ = min(len(p.weights), len(r.weights)), len(p.weights) + len(r.weights)
    swaps: float = 2**few / math.comb(all_, few)
    return share_of_nearer(p, r) <= swaps


def share_of_nearer(p: PartyTopics, r: PartyTopics) -> float:
    """Return the share of other divisions of two parties' topics whose mean topics are nearer than the parties' own.

    Sides keep their numbers of topics. Near is by Hellinger distance, over the words that are frequent in both
    together. The divisions are the same in each call, so that results repeat.
    """
    K, weights = len(p.weights), np.concatenate([p.weights, r.weights])
    mean = p.weights @ p.topic_word + r.weights @ r.topic_word
    frequent = np.argsort(-mean, kind="stable")[:FREQUENT]
    rows = np.concatenate([p.topic_word[:, frequent], r.topic_word[:, frequent]]).astype(np.float64)
    rng = np.random.default_rng(0)
    orders = [np.arange(len(weights)), *(rng.permutation(len(weights)) for _ in range(DIVISIONS))]
    here = np.zeros((1 + DIVISIONS, len(weights)))
    np.put_along_axis(here, np.array(orders)[:, :K], 1.0, axis=1)
    affinity = (_roots(here * weights @ rows) * _roots((1.0 - here) * weights @ rows)).sum(axis=1)  # near: large
    return float(np.mean(affinity[1:] > affinity[0] + _ROUNDING))


def _roots(means: F64) -> F64:
    """Return the roots of rows that sum to 1; of a side of empty topics, zeros."""
    totals = means.sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt(means / np.where(totals > 0, totals, 1.0)))


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
