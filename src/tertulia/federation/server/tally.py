"""Which answers count: the last one of each party, the ones that sums contain, and totals that stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tertulia.federation.messages import BEFORE_ALL
from tertulia.federation.server.aggregation import add_replies
from tertulia.federation.server.journal import Commit
from tertulia.federation.types import PartyId, Place

_ENTERED = "first list"  # no step's name: that has a colon


@dataclass
class Tally:
    """The answers that count so far in a run; a commit stores them."""

    answered: dict[PartyId, Place]  # the place of each party's last answer
    counted: dict[str, dict[PartyId, Place]]  # step -> party -> place of its last reply that a sum contains
    standing: dict[str, Any]  # step -> total of masked sums that stands (`types.Replies`)

    @classmethod
    def of(cls, commit: Commit) -> Tally:
        """Return the tally at a commit."""
        counted = {step: _places(places) for step, places in commit.counted.items()}
        return cls(_places(commit.answered), counted, dict(commit.standing))

    def last(self, party: PartyId) -> Place:
        """Return the place of a party's last answer."""
        return self.answered.get(party, BEFORE_ALL)

    def counted_of(self, step: str) -> dict[PartyId, Place]:
        """Return the places of the replies to a step that a sum contains."""
        return self.counted.get(step, {})

    def count(self, step: str, parties: Iterable[PartyId], place: Place) -> None:
        """Record that a sum contains the replies of these parties."""
        self.counted.setdefault(step, {}).update(dict.fromkeys(parties, place))

    @property
    def entered(self) -> dict[PartyId, Place]:
        """The places of the first masked sums with parties' whole numbers; equal places: parties that came together."""
        return self.counted_of(_ENTERED)

    def enter(self, parties: Iterable[PartyId], place: Place) -> None:
        """Record that a masked sum contains whole numbers of these parties, for some of them the first."""
        self.count(_ENTERED, [party for party in parties if party not in self.entered], place)

    def add_standing(self, step: str, change: Any) -> Any:
        """Add a change to the total that stands, and return the new total."""
        total = add_replies([*([self.standing[step]] if step in self.standing else []), change])
        self.standing = {**self.standing, step: total}
        return total

    @property
    def known(self) -> set[PartyId]:
        """The parties that have ever answered."""
        return set(self.answered) | {party for places in self.counted.values() for party in places}


def _places(places: dict[str, Any]) -> dict[PartyId, Place]:
    return {party: (round_, ordinal) for party, (round_, ordinal) in places.items()}
