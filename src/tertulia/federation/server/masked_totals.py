"""Totals of masked replies: which replies are added, and the places at which sums were begun before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tertulia.errors import ConfigError, QuorumError
from tertulia.federation.checks import hides_replies
from tertulia.federation.messages import Answer, Verb, body
from tertulia.federation.secure.rings import wider
from tertulia.federation.server.answers import Masking
from tertulia.federation.server.membership import Presence
from tertulia.federation.server.secure_sums import SecureSums
from tertulia.federation.server.sum_journal import MaskedSum
from tertulia.federation.server.tally import Tally
from tertulia.federation.types import PartyId, Place, Step, replies_of, step_name


class Wider(Exception):
    """A party's numbers do not fit the rings of a masked sum."""


class Asker(Protocol):
    """The part of the server's handle that masked totals need."""

    tally: Tally
    presence: Presence

    @property
    def parties(self) -> Sequence[PartyId]:
        """The members of this round."""

    @property
    def place(self) -> Place:
        """The place of the next question."""

    def ask(self, verb: Verb, step: Step, message: Any, masking: Masking | None = None) -> dict[PartyId, Any]:
        """Ask the parties, and go to the next place; raise `Wider` if one needs wider rings."""

    def skip(self) -> None:
        """Go to the next place without a question."""

    def note_silence(self, party: PartyId, why: str) -> None:
        """Warn that a party's answer is not used."""


class MaskedTotals:
    """The masked totals of one run."""

    def __init__(self, asker: Asker, sums: SecureSums) -> None:
        self._asker, self._sums = asker, sums

    def total(self, verb: Verb, step: Step, message: Any) -> tuple[Any, list[PartyId]]:
        """Return the total, and the parties in it; a sum that was begun before is not asked for again."""
        given = message if isinstance(message, Mapping) else dict.fromkeys(self._asker.parties, message)
        if len({id(one) for one in given.values()}) != 1:
            raise ConfigError("a masked sum asks all parties the same: messages by party are for `each`")
        question = hashlib.sha256(body(verb, step, next(iter(given.values())))[0]).hexdigest()
        asker, place, name = self._asker, self._asker.place, step_name(step)
        begun = self._sums.find_or_none(place, question)
        if begun is None:
            begun = self._add_up(verb, step, message, question), None
        else:
            asker.skip()
            asker.presence.ask(step, [party for party in asker.parties if party in given])
            asker.presence.hear({party: Answer("ok", "", None) for party in begun[0].survivors})
        total, survivors = self._sums.total(place, *begun), list(begun[0].survivors)
        asker.tally.answered |= dict.fromkeys(survivors, place)
        asker.tally.count(name, survivors, place)
        return asker.tally.add_standing(name, total) if replies_of(step) == "standing" else total, survivors

    def _add_up(self, verb: Verb, step: Step, message: Any, question: str) -> MaskedSum:
        """Ask for masked replies, with wider rings until all fit, and add up those of the survivors."""
        asker, place, name, before = self._asker, self._asker.place, step_name(step), dict(self._asker.tally.answered)
        masking = self._sums.masking(name)
        while True:
            try:
                replies = asker.ask(verb, step, message, masking)
                break
            except Wider:
                masking = replace(masking, widths=wider(masking.widths))
        survivors = self._survivors(step, replies, place, grouped=isinstance(message, Mapping))
        left_out = [party for party in replies if party not in survivors]
        for party in left_out:  # its answer is void
            asker.tally.answered.pop(party, None)
            asker.tally.answered |= {party: before[party]} if party in before else {}
        asker.presence.leave_out(left_out)
        return self._sums.add_up(place, name, question, masking, {p: replies[p] for p in survivors})

    def _survivors(self, step: Step, replies: Mapping[PartyId, Any], place: Place, *, grouped: bool) -> list[PartyId]:
        """Choose the parties of a list: a few first contributions must wait, for the total would show them."""
        counted, sums = self._asker.tally.counted_of(step_name(step)), self._sums
        new = [party for party in replies if party not in counted] if replies_of(step) != "values" else []
        waiting = new if len(new) < sums.min_summed else []
        for party in waiting:
            why = f"its first contribution waits for those of at least {sums.min_summed} parties"
            self._asker.note_silence(party, why)
        chosen = [party for party in replies if party not in waiting]
        if len(chosen) < (needed := sums.needed(chosen if grouped else ())):
            raise QuorumError(
                f"{len(chosen)} of {len(sums.members)} members answered {step.__name__} in round {place[0]}, and a "
                f"masked sum needs {needed}: wait for more parties and resume"
            )
        return chosen


def check_hides(step: Step) -> None:
    """Raise `ConfigError` for a step whose single replies would be seen beside secure sums."""
    if not hides_replies(step):
        raise ConfigError(
            f"secure = true hides single parties' replies, and {step_name(step)} asks for them (`each`): use a method "
            "that needs sums only, or set secure = false"
        )
