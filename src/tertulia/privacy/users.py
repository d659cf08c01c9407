"""What users who trust nobody send, as the ledger of their shard sees it: tuples in every round, or reports once.

A shard holds many users and gives the server only their sum, but the promise made to a user must hold without trust in
the shard's sum: each charge is for the worst single user, whose whole document may become another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tertulia._arrays import Array
from tertulia.errors import Unreleased
from tertulia.privacy.channels import TokenReports
from tertulia.privacy.mechanisms import Adjacency, EventData, Mechanism, Unit
from tertulia.privacy.perturbation import Perturbation

if TYPE_CHECKING:
    from tertulia.kernels.reports.channel import Channel
    from tertulia.privacy.noise import NoiseStream


@dataclass(frozen=True, eq=False)
class UserTuples(Mechanism):
    """The sum of the perturbed tuples (w, k1, k2) of a shard's users in one round (FedLDA, algorithm 1).

    RRP, kRR and t-kRR perturb the word of a tuple alone: its topics, and how many tuples are dummies, are computed from
    the words and travel as they are. So nothing bounds what a user gives away, whatever the mechanism does to a word;
    nor does it where each token's word is drawn `once`, which only keeps the server from averaging many draws of it.
    The hybrid mechanism perturbs the whole updating vector, and keeps its epsilon in every round.
    """

    how: Perturbation = field(kw_only=True)
    tell: Callable[[bytes], Array] | None = field(default=None, kw_only=True)  # the sum told, from 32 secret bytes
    finding: str = field(default="", kw_only=True)
    once: bool = field(default=False, kw_only=True)  # a token is told by the same word in all rounds
    unit: Unit = field(default=Unit.USER, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "user-tuples"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "claimed", self.how.claim())
        if self.how.kind != "hm":
            leaks = ("the topics of tuples are not perturbed", "dummies can be told from tuples")
            object.__setattr__(self, "assumptions", (*self.assumptions, *leaks))

    def charge(self) -> EventData:
        """One round of one user."""
        return pure(self.how.epsilon) if self.how.kind == "hm" else {"type": "NonPrivateDpEvent"}

    def params(self) -> dict[str, Any]:
        """The mechanism, and what it really does with the model at hand."""
        how = self.how
        own = {"delta": how.delta} if how.kind in ("rrp", "tkrr") else {}
        words = {} if how.kind == "hm" else {"words": "drawn once" if self.once else "drawn anew"}
        told = {"finding": self.finding} if self.finding else {}
        return {"mechanism": how.kind, "epsilon": how.epsilon, **own, **words, **told}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """What users tell; `x`, the sum of their true tuples, stays."""
        if self.tell is None:
            raise Unreleased(f"'{self.what}' is only planned: nobody says how users tell it")
        return self.tell(noise.words(4).tobytes())


@dataclass(frozen=True)
class UserReports(Mechanism):
    """The reports of all tokens of users who hold at most so many each: every token once, whatever the rounds.

    >>> UserReports("reports of tokens", channel=Channel("krr", 7.5, V=3309), tokens=150).charge()["count"]
    150
    """

    channel: Channel = field(kw_only=True)
    tokens: int = field(kw_only=True)  # of one user, at most
    unit: Unit = field(default=Unit.USER, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "user-reports"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        own = ("the lengths of documents are public", f"a user reports {self.tokens} tokens at most")
        object.__setattr__(self, "assumptions", (*self.assumptions, *own))

    def charge(self) -> EventData:
        """A token's report, as often as the worst user has tokens."""
        one = TokenReports(self.what, channel=self.channel).charge()
        return {"type": "SelfComposedDpEvent", "event": one, "count": self.tokens}

    def params(self) -> dict[str, Any]:
        """The channel and the number of tokens."""
        return {**TokenReports(self.what, channel=self.channel).params(), "tokens": self.tokens}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is: its noise is in the reports already."""
        return x


def pure(epsilon: float) -> EventData:
    """An event of which only its epsilon is known: none of that epsilon is worse than randomised response of two."""
    return {"type": "RandomizedResponseDpEvent", "noise_parameter": 2 / (math.exp(epsilon) + 1), "num_buckets": 2}
