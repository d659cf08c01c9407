"""Who is there: parties that join late or leave, and simulated dropouts.

All of it is a function of the round, so a resumed run meets the same absences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tertulia.federation.types import PartyId


@dataclass(frozen=True)
class Membership:
    """The round in which a party joins, and the one in which it leaves."""

    joins: int = 0
    leaves: int | None = None

    def present(self, round_: int) -> bool:
        """Tell whether the party is a member in this round."""
        return self.joins <= round_ and (self.leaves is None or round_ < self.leaves)


@dataclass(frozen=True)
class Dropouts:
    """Members that do not answer: a share of them at random, or those that a script names.

    >>> Dropouts(script={3: ("north",)}).absent(3, "north")
    True
    """

    rate: float = 0.0
    seed: int = 0
    script: Mapping[int, tuple[PartyId, ...]] = field(default_factory=dict)

    def absent(self, round_: int, party: PartyId) -> bool:
        """Tell whether this member stays silent in this round."""
        if party in self.script.get(round_, ()):
            return True
        digest = hashlib.blake2b(f"{self.seed}/{round_}/{party}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") < self.rate * 2**64
