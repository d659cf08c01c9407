"""The perturbed tuples of users who trust nobody (FedLDA), as the ledger of their shard sees them.

A shard holds many users and gives the server only their sum, but the promise made to a user must hold without trust in
the shard's sum: each charge is for the worst single user, whose whole document may become another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "claimed", self.how.claim())
        if self.how.kind != "hm":
            leaks = ("the topics of tuples are not perturbed", "dummies can be distinguished from tuples")
            object.__setattr__(self, "assumptions", (*self.assumptions, *leaks))

    def charge(self) -> EventData:
        """Return the loss of one user in one round."""
        return pure_event(self.how.epsilon) if self.how.kind == "hm" else {"type": "NonPrivateDpEvent"}

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
