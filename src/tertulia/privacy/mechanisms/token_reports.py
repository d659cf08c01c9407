"""Private reports of tokens as the ledger sees them: what one report costs, and what a user's or a document's do.

A report is drawn once for each token, from a key of its document (`kernels.reports`). So all that is computed from
reports costs once, however often it is sent, and documents that come later cost the others nothing
(`reported_documents`). The party's key outlasts the run where it has a `home`; without one, each run draws and costs
again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.assumptions import declare_public
from tertulia.privacy.mechanisms import Adjacency, Claim, EventData, Randomiser, Unit

if TYPE_CHECKING:
    from tertulia.kernels.reports.channel import Channel


LENGTHS = declare_public("the lengths of documents", plural=True)
SHOWS = declare_public("which documents are new, edited or the same as before")


@dataclass(frozen=True)
class TokenReports(Randomiser):
    """The reports of all tokens.

    A token becomes another word (substitution, the default), or an empty one that keeps its place (null-replace). The
    latter flatters: at epsilon >= ln V it holds even if nearly every word is published.

    >>> from tertulia.kernels.reports.channel import Channel
    >>> TokenReports("reports of tokens", channel=Channel("laplace", 8.0, V=2949)).charge()["count"]
    2
    """

    channel: Channel = field(kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    unit: Unit = field(default=Unit.TOKEN, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "token-reports"
    local: ClassVar[bool] = True
    by_document: ClassVar[bool] = True

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
        object.__setattr__(self, "assumptions", (*self.assumptions, LENGTHS, SHOWS))

    def charge(self) -> EventData:
        """Return the privacy loss of one token's report."""
        substitute = self.adjacency is Adjacency.SUBSTITUTE
        if self.channel.kind == "laplace":
            one: EventData = {"type": "LaplaceDpEvent", "noise_multiplier": 1 / self.channel.epsilon}
            # Substitution moves two entries by 1, each under noise of its own: two events, not one of twice the size.
            return {"type": "SelfComposedDpEvent", "event": one, "count": 2} if substitute else one
        noise, buckets = _response(self.channel, substitute)
        return {"type": "RandomizedResponseDpEvent", "noise_parameter": noise, "num_buckets": buckets}

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return how many tokens have another report, or for Laplace noise how many entries of vectors move."""
        return changed_tokens(one, other) * self.sensitivity

    def params(self) -> dict[str, Any]:
        """Return the channel. Keys and values are part of the charge's id: others mean other noise and a new charge."""
        own = {"tau": self.channel.tau} if self.channel.kind == "laplace" else {"told": self.channel.m}
        return {"channel": self.channel.kind, "epsilon": self.channel.epsilon, "words": self.channel.V, **own}


@dataclass(frozen=True)
class UserReports(Randomiser):
    """The reports of all tokens of users who hold at most `tokens` each: every token once, for any number of rounds.

    >>> from tertulia.kernels.reports.channel import Channel
    >>> UserReports("reports of tokens", channel=Channel("krr", 7.5, V=3309), tokens=150).charge()["count"]
    150
    """

    channel: Channel = field(kw_only=True)
    tokens: int = field(kw_only=True)  # of one user, at most
    unit: Unit = field(default=Unit.USER, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.SUBSTITUTE, kw_only=True)
    name: ClassVar[str] = "user-reports"
    local: ClassVar[bool] = True
    by_document: ClassVar[bool] = True

    def __post_init__(self) -> None:
        own = (LENGTHS, f"a user reports {self.tokens} tokens at most", SHOWS)
        object.__setattr__(self, "assumptions", (*self.assumptions, *own))

    def charge(self) -> EventData:
        """Return a token's report, as often as the worst user has tokens."""
        one = TokenReports(self.what, channel=self.channel).charge()
        return {"type": "SelfComposedDpEvent", "event": one, "count": self.tokens}

    @property
    def reach(self) -> float:
        """All tokens of one user."""
        return self.tokens

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return how many tokens have another report."""
        return changed_tokens(one, other)

    def params(self) -> dict[str, Any]:
        """Return the channel and the number of tokens."""
        return {**TokenReports(self.what, channel=self.channel).params(), "tokens": self.tokens}


def changed_tokens(one: Sequence[Array], other: Sequence[Array]) -> float:
    """Return how many tokens differ of two corpora: words [N] and the offsets of documents; lengths are public."""
    (words, documents), (others, ends) = one, other
    return float(np.sum(words != others)) if np.array_equal(documents, ends) else math.inf


def ftm_claim(channel: Channel) -> Claim:
    """Return FTM's claim for its Laplace noise: including or excluding a token, to which null-replace is nearest."""
    return Claim(channel.epsilon, 0.0, "FTM sec. 3.1.1")


def _response(channel: Channel, substitute: bool) -> tuple[float, float]:
    """Return the randomised response whose privacy loss is distributed as that of subset selection.

    Its buckets need not be whole. Of two words, a subset names one alone, or the other alone, or both or none, which
    says nothing: as an answer is one's bucket, or the other's, or any else. Of a word and the null, which is answered
    by a uniform subset, it says whether it holds the word.
    """
    V, m, odds = channel.V, channel.m, math.exp(channel.epsilon)
    if m == 1:
        return V / (odds + V - 1), V
    named = m * odds / (m * odds + V - m)
    if substitute:
        alone = named * (V - m) / (V - 1)
        buckets = 1 + odds * (1 / alone - 1)
        return buckets / (odds + buckets - 1), buckets
    return (1 - named) * V / (V - m), V / m
