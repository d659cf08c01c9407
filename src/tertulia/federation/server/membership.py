"""The parties of a round: members that join late or leave, simulated dropouts, and those that took part.

Membership and dropouts are functions of the round, so a resumed run has the same absences. A party takes part in a
round if it answers every question that it is asked, apart from scoring questions (`@step(metric=True)`) that its policy
refuses. A member that is asked nothing while others are does not take part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tertulia.federation.messages import Answer
from tertulia.federation.types import PartyId, Step, is_metric


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


class Presence:
    """The parties that were asked in this round, and those that missed a question.

    Runs may have thousands of rounds, so the history names parties only when they differ from those of the round
    before. The object has no other state between rounds: a run that resumes or rolls back builds it from the history.
    """

    def __init__(self, history: Sequence[Mapping[str, Any]] = ()) -> None:
        self._before = next((list(facts["took_part"]) for facts in reversed(history) if "took_part" in facts), None)
        self._asked: set[PartyId] = set()
        self._missed: set[PartyId] = set()
        self._open: tuple[Step, Sequence[PartyId]] | None = None  # the question whose answers are awaited

    def ask(self, step: Step, members: Sequence[PartyId]) -> None:
        """Record a question to these members, including those that are known to be absent."""
        self._asked.update(members)
        self._open = (step, members)

    def hear(self, answers: Mapping[PartyId, Answer]) -> None:
        """Record the answers to the last question."""
        if self._open is None:
            return
        (step, members), self._open = self._open, None
        excused = ("ok", "refused") if is_metric(step) else ("ok",)
        self._missed.update(p for p in members if p not in answers or answers[p].kind not in excused)

    def leave_out(self, parties: Iterable[PartyId]) -> None:
        """Record parties whose answers were not added."""
        self._missed.update(parties)

    def close(self, members: Sequence[PartyId]) -> dict[str, list[PartyId]]:
        """End the round; return `took_part` for the history, or nothing if it has not changed."""
        here = [p for p in members if p not in self._missed and (p in self._asked or not self._asked)]
        self._asked, self._missed = set(), set()
        if here == self._before:
            return {}
        self._before = here
        return {"took_part": here}
