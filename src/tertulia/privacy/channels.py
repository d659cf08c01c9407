"""Private reports of tokens as the ledger sees them: what one report costs, and what a document of them does.

A report is drawn once for each token, from the party's key (`kernels.reports`), so whatever is computed from reports
costs once, however often it is sent: release the first such thing by `TokenReports`, the others as `Derived` from it.
The key outlasts the run where the party has a `home`; without one, each run draws and costs anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tertulia._arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.accounting import Guarantee, Loss, compose
from tertulia.privacy.events import flatten
from tertulia.privacy.mechanisms import Adjacency, Claim, EventData, Mechanism, Unit

if TYPE_CHECKING:
    from tertulia.kernels.reports.channel import Channel
    from tertulia.privacy.noise import NoiseStream


@dataclass(frozen=True)
class TokenReports(Mechanism):
    """What is computed from the reports of all tokens, and from nothing else of the party's.

    A token becomes another word (substitution, the default), or an empty one that keeps its place (null-replace). The
    latter flatters: at epsilon >= ln V it holds even if nearly every word is published.

    >>> TokenReports("topic counts", channel=Channel("laplace", 8.0, V=2949)).charge()["count"]
    2
    """

    channel: Channel = field(kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    unit: Unit = field(default=Unit.TOKEN, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "token-reports"
    local: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unit is not Unit.TOKEN:
            raise ConfigError(f"unit = {self.unit.value}: a report hides a token; the ledger converts to documents")
        if self.adjacency is Adjacency.ADD_REMOVE:
            raise ConfigError(
                "adjacency = add-remove: one token more is one report more, for all to see; "
                "choose substitute or null-replace"
            )
        if self.channel.kind == "laplace" and self.adjacency is Adjacency.SUBSTITUTE:
            object.__setattr__(self, "sensitivity", 2.0)  # two entries of the one-hot vector move by 1
        object.__setattr__(self, "assumptions", (*self.assumptions, "the lengths of documents are public"))

    def charge(self) -> EventData:
        """The privacy loss of one token's report."""
        return _charge(self.channel, self.adjacency)

    def params(self) -> dict[str, Any]:
        """The channel."""
        own = {"tau": self.channel.tau} if self.channel.kind == "laplace" else {"told": self.channel.m}
        return {"channel": self.channel.kind, "epsilon": self.channel.epsilon, "words": self.channel.V, **own}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is: its noise is in the reports already."""
        return x


def paper_claim(channel: Channel) -> Claim:
    """What FTM says of its Laplace noise: including or excluding a token, which null-replace comes nearest to."""
    return Claim(channel.epsilon, 0.0, "FTM sec. 3.1.1")


def guarantee(channel: Channel, adjacency: Adjacency, delta: float = 0.0, tokens: int = 1) -> Guarantee:
    """What the reports of so many tokens, a document's, cost together."""
    losses = [Loss(event, adjacency, 1, count * tokens) for event, count in flatten(_charge(channel, adjacency))]
    return compose(losses, delta)


def _charge(channel: Channel, adjacency: Adjacency) -> EventData:
    substitute = adjacency is Adjacency.SUBSTITUTE
    if channel.kind == "laplace":
        one: EventData = {"type": "LaplaceDpEvent", "noise_multiplier": 1 / channel.epsilon}
        # Substitution moves two entries by 1, each under noise of its own: two events, not one of twice the size.
        return {"type": "SelfComposedDpEvent", "event": one, "count": 2} if substitute else one
    noise, buckets = _response(channel, substitute)
    return {"type": "RandomizedResponseDpEvent", "noise_parameter": noise, "num_buckets": buckets}


def _response(channel: Channel, substitute: bool) -> tuple[float, float]:
    """The randomised response whose privacy loss is distributed as that of subset selection.

    Its buckets need not be whole. Of two words, a subset tells one alone, or the other alone, or both or none, which
    says nothing: as an answer is one's bucket, or the other's, or any else. Of a word and the null, who is answered by
    a uniform subset, it tells whether it holds the word.
    """
    V, m, odds = channel.V, channel.m, math.exp(channel.epsilon)
    if m == 1:
        return V / (odds + V - 1), V
    told = m * odds / (m * odds + V - m)
    if substitute:
        alone = told * (V - m) / (V - 1)
        buckets = 1 + odds * (1 / alone - 1)
        return buckets / (odds + buckets - 1), buckets
    return (1 - told) * V / (V - m), V / m
