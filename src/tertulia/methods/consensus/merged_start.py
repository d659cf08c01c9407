"""The topics that Consensus starts from: those that parties learned alone, merged into K.

Invented topics of one party, unlike any other, would each get a cluster of their own, and leave fewer for the rest. So
where sums are to be robust, parties count once with the merged topics, to try them out. Then topics of parties without
support are dropped, and topics that hold hardly any tokens, and the rest is merged again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.federation.types import PartyId
from tertulia.methods.common.priors import bound_weights
from tertulia.methods.common.topic_clusters import cluster, cluster_of

_TOKENS = 100  # pseudo-tokens per document and topic: enough that the merged topics hardly move in the first round
_UNUSED = 0.1  # of the tokens of a topic of mean size: a merged topic with fewer has no use


@dataclass(frozen=True)
class StartTopics:
    """All parties' topics, one after the other."""

    rows: Array  # [sum of all K_p, V]
    weights: F64  # [sum of all K_p] documents of the party
    party_of: Array  # [sum of all K_p] names

    @classmethod
    def of(cls, models: Mapping[PartyId, Any], most: float = np.inf) -> StartTopics:
        """List the topics of these models; no party weighs more than `most` times the median one."""
        sizes = [len(model.topic_word) for model in models.values()]
        documents = np.array([float(model.documents) for model in models.values()])
        bounded = documents if np.isinf(most) else bound_weights(documents, most)
        rows = np.concatenate([model.topic_word for model in models.values()])
        return cls(rows, np.repeat(bounded, sizes), np.repeat(list(models), sizes))

    def merge(self, K: int) -> I64:
        """Merge into K topics, as pseudo-counts [K, V]."""
        merged, weight = cluster(self.rows, self.weights, K)
        return np.asarray(np.rint(merged * weight[:, None] * _TOKENS).astype(np.int64))

    def without(self, left_out: tuple[PartyId, ...], used: Array) -> StartTopics:
        """Drop the topics of these parties, and those in merged topics that are hardly used.

        `used` [K] are the tokens in each of the merged topics. At least K topics always stay.
        """
        useful = used >= _UNUSED * used.mean()
        kept = ~np.isin(self.party_of, left_out)
        for chosen in (kept & useful[cluster_of(self.rows, len(used))], kept):
            if chosen.sum() >= len(used):
                return replace(
                    self, rows=self.rows[chosen], weights=self.weights[chosen], party_of=self.party_of[chosen]
                )
        return self
