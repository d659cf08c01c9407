"""How the server packs what it asks.

A question goes as differences from the last one of its step that the party has answered to this very process. Whether
the party still has that one, it says itself (`lacking`), so nothing of this outlasts the server, and nothing needs to.
"""

from __future__ import annotations

from collections.abc import Mapping

from tertulia.federation.messages import Answer
from tertulia.federation.packing import Base, Bases, pack
from tertulia.federation.types import PartyId


class Packing:
    """The questions that parties are known to have."""

    def __init__(self) -> None:
        self._had: dict[PartyId, Bases] = {}

    def pack(self, step: str, bodies: Mapping[PartyId, bytes]) -> dict[PartyId, bytes]:
        """What travels for the bodies of a step's questions; most parties get the same, which is packed once."""
        packed: dict[tuple[int, str], bytes] = {}
        found = {}
        for party, body in bodies.items():
            base = self._had[party].of_step_or_none(step) if party in self._had else None
            key = (id(body), base.name if base else "")
            if key not in packed:
                packed[key] = pack(body, base)
            found[party] = packed[key]
        return found

    def note(self, step: str, bodies: Mapping[PartyId, bytes], answers: Mapping[PartyId, Answer]) -> None:
        """Parties that have answered have got their questions."""
        bases: dict[int, Base] = {}
        for party, answer in answers.items():
            if answer.kind == "ok":
                body = bodies[party]
                if id(body) not in bases:
                    bases[id(body)] = Base.of(body)
                self._had.setdefault(party, Bases()).keep(step, bases[id(body)])

    def forget(self, party: PartyId) -> None:
        """The party has lost what it had."""
        self._had.pop(party, None)
