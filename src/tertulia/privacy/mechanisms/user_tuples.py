"""The perturbed tuples of users who trust nobody (FedLDA), as the ledger of their shard sees them.

A shard holds many users and gives the server only their sum, but the promise made to a user must hold without trust in
the shard's sum: each charge is for the worst single user, whose whole document may become another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from tertulia._arrays import Array
from tertulia.privacy.mechanisms import Adjacency, EventData, Randomiser, Unit
from tertulia.privacy.mechanisms.perturbation import Perturbation


@dataclass(frozen=True)
class UserTuples(Randomiser):
    """The perturbed tuples (w, k1, k2) of a shard's users in one round (FedLDA, algorithm 1).

    RRP, kRR and t-kRR perturb the word of a tuple alone: its topics, and how many tuples are dummies, are computed from
    the words and travel as they are. So nothing bounds what a user reveals, with any mechanism for words;
    nor does it where each token's word is drawn `once`, which only keeps the server from averaging many draws of it.
    The hybrid mechanism perturbs the whole updating vector, and keeps its epsilon in every round.

    `question` names all that the draws depend on besides the party's key: the round, the model, the users' topics.
    Another question is other noise, and another charge.
    """

    how: Perturbation = field(kw_only=True)
    finding: str = field(default="", kw_only=True)  # what the mechanism really does with the model at hand
    once: bool = field(default=False, kw_only=True)  # a token is reported by the same word in all rounds
    question: str = field(default="", kw_only=True)
    unit: Unit = field(default=Unit.USER, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "user-tuples"
    local: ClassVar[bool] = True
    own_params: ClassVar[frozenset[str]] = frozenset({"question"})  # it names the users' topics

    def __post_init__(self) -> None:
        object.__setattr__(self, "claimed", self.how.claim())
        if self.how.kind != "hm":
            leaks = ("the topics of tuples are not perturbed", "dummies can be distinguished from tuples")
            object.__setattr__(self, "assumptions", (*self.assumptions, *leaks))

    def charge(self) -> EventData:
        """Return the loss of one user in one round."""
        return pure_event(self.how.epsilon) if self.how.kind == "hm" else {"type": "NonPrivateDpEvent"}

    @property
    def reach(self) -> float:
        """One user, or no bound where topics are not perturbed."""
        return 1.0 if self.how.kind == "hm" else math.inf

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return how many users have another vector: words, topics, or topics that the server has.

        Inputs are users' offsets, who answers, and what each token has: its word, its topic, the reported ones.
        """
        answering, others = one[1], other[1]
        if not np.array_equal(answering, others):
            return math.inf
        own, theirs = (
            [tuple(part[a:b].tobytes() for part in arrays[2:] if len(part)) for a, b in pairwise(arrays[0].tolist())]
            for arrays in (one, other)
        )
        return float(sum(a != b for a, b in zip(own, theirs, strict=True)))

    def params(self) -> dict[str, Any]:
        """Return the mechanism, what it really does with the model at hand, and the question."""
        how = self.how
        own = {"delta": how.delta} if how.kind in ("rrp", "tkrr") else {}
        words = {} if how.kind == "hm" else {"words": "drawn once" if self.once else "drawn anew"}
        found = {"finding": self.finding} if self.finding else {}
        return {"mechanism": how.kind, "epsilon": how.epsilon, **own, **words, **found, "question": self.question}


def pure_event(epsilon: float) -> EventData:
    """Return an event of which only epsilon is known: none is worse than randomised response of two values."""
    return {"type": "RandomizedResponseDpEvent", "noise_parameter": 2 / (math.exp(epsilon) + 1), "num_buckets": 2}
