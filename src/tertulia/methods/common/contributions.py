"""A party's contribution to a total that the server keeps from round to round.

The server adds each round's replies to the total. A party replies with a *difference*: its new contribution minus its
contribution in the total. So the contribution of an absent party stays in the model, and the party replaces it when it
returns. Nothing is lost and nothing is counted twice.

The server records which reply of each party the total contains, and names it in the question (`party.counted`). The
party keeps two contributions: the last one that it sent, and the one that the total contained at that time. If the
question names neither of them, the party cannot answer: it has lost its state, or the server is wrong.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tertulia.errors import LostContribution
from tertulia.federation.types import Party, Place


class Contribution(Protocol):
    """A party's contribution in answer to one question."""

    @property
    def place(self) -> Place:
        """The question's place in the run."""


C = TypeVar("C", bound=Contribution, covariant=True)


class Contributions(Protocol[C]):
    """The two contributions that a party keeps."""

    @property
    def latest(self) -> C:
        """The last one that the party sent."""

    @property
    def counted(self) -> C | None:
        """The one in the total when it sent the latest. Once there is one, there always is one."""


def counted_or_none(party: Party, kept: Contributions[C] | None) -> C | None:
    """Return this party's contribution in the total, None if there is none yet; raise if the party has lost it."""
    if kept is None:
        check_not_counted(party)
        return None
    if party.counted is None and kept.counted is None:
        return None
    found = next((one for one in (kept.latest, kept.counted) if one is not None and one.place == party.counted), None)
    if found is None:
        raise LostContribution
    return found


def check_not_counted(party: Party) -> None:
    """Raise `LostContribution` if the total holds something of a party that keeps nothing."""
    if party.counted is not None:
        raise LostContribution
