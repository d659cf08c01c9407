"""The topics that `robust` Consensus starts from: those that parties learned alone, merged into K.

A start from sums would trust all parties: nobody could tell which of them made a total wrong. Invented topics of one
party, unlike any other, would each get a cluster of their own, and leave fewer for the rest. So parties count once with
the merged topics, to try them out. Then topics of parties without support are dropped, and topics that hold hardly any
tokens, and the rest is merged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.federation.types import PartyId
from tertulia.methods.common.priors import bound_weights
from tertulia.methods.common.topic_clusters import cluster_of, merge_sets, totals

_TOKENS = 100  # pseudo-tokens per document and topic: enough that the merged topics hardly move in the first round
_UNUSED = 0.1  # of the tokens of a topic of mean size: a merged topic with fewer has no use


@dataclass(frozen=True)
class StartTopics:
    """All parties' topics, one after the other."""

    rows: Array  # [sum of all K_p, V]
    weights: F64  # [sum of all K_p] documents of the party
    party_of: Array  # [sum of all K_p] names
    place: Array  # [sum of all K_p] the topic's number within its party
    seeded: int = 0  # the first topics of every party have seeds: those of one place are one topic

    @classmethod
    def of(cls, models: Mapping[PartyId, Any], most: float = 1.0, seeded: int = 0) -> StartTopics:
        """List the topics of these models; no party weighs more than `most` times the median one."""
        sizes = [len(model.topic_word) for model in models.values()]
        documents = np.array([float(model.documents) for model in models.values()])
        bounded = documents if np.isinf(most) else bound_weights(documents, most)
        rows = np.concatenate([model.topic_word for model in models.values()])
        place = np.concatenate([np.arange(size) for size in sizes])
        return cls(rows, np.repeat(bounded, sizes), np.repeat(list(models), sizes), place, seeded)

    def clusters(self, K: int) -> I64:
        """Return the merged topic of each topic: of those with seeds its place, of the others a cluster."""
        number, free = np.array(self.place, dtype=np.int64), self.place >= self.seeded
        if self.seeded < K:
            number[free] = self.seeded + cluster_of(self.rows[free], K - self.seeded)
        else:  # a party may have more topics than are shared
            number[free] = cluster_of(self.rows, K)[free] % K
        return number

    def merge(self, K: int) -> I64:
        """Merge into K topics, as pseudo-counts [K, V]."""
        number = self.clusters(K)
        kept = np.arange(number.max() + 1)
        merged, weight = merge_sets(self.rows, self.weights, number, kept), totals(number, self.weights, kept)
        return np.asarray(np.rint(merged * weight[:, None] * _TOKENS).astype(np.int64))

    def without(self, left_out: tuple[PartyId, ...], used: Array) -> StartTopics:
        """Drop the topics of these parties, and those in merged topics that are hardly used.

        `used` [K] are the tokens in each of the merged topics. At least K topics always stay.
        """
        useful = used >= _UNUSED * used.mean()
        useful[: self.seeded] = True
        kept = ~np.isin(self.party_of, left_out)
        for chosen in (kept & useful[self.clusters(len(used))], kept):
            if chosen.sum() >= len(used):
                parts = ("rows", "weights", "party_of", "place")
                return replace(self, **{part: getattr(self, part)[chosen] for part in parts})
        return self
