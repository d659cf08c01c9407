"""Totals of masked replies: which replies are added, and the places at which sums were begun before.

Several sums tell the same of a party's documents: counts of words, and the first contribution to each step that sends
changes. From two such totals over parties that differ by one, that party's numbers follow by subtraction. So parties
that enter such a sum together enter all others together, too (`Tally.entered`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tertulia.errors import ConfigError, QuorumError
from tertulia.federation.checks import hides_replies
from tertulia.federation.messages import BEFORE_ALL, Answer, Verb, body
from tertulia.federation.secure.rings import wider
from tertulia.federation.server.answers import Masking
from tertulia.federation.server.membership import Presence
from tertulia.federation.server.secure_sums import SecureSums
from tertulia.federation.server.sum_journal import MaskedSum
from tertulia.federation.server.tally import Tally
from tertulia.federation.types import PartyId, Place, Step, has_one_list, replies_of, step_name


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
        if has_one_list(step) or replies_of(step) == "changes":
            asker.tally.enter(survivors, place)
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
        """Choose the parties of a list: a few whole contributions must wait, for the total would show them."""
        sums, waiting = self._sums, self._waiting(step, replies)
        for party, why in waiting.items():
            self._asker.note_silence(party, why)
        chosen = [party for party in replies if party not in waiting]
        if len(chosen) < (needed := sums.needed(chosen if grouped else ())):
            why = next(iter(waiting.values()), "")
            raise QuorumError(
                f"{len(chosen)} of {len(sums.members)} members answered {step.__name__} in round {place[0]}, and a "
                f"masked sum needs {needed}: wait for more parties and resume" + (f" ({why})" if why else "")
            )
        return chosen

    def _waiting(self, step: Step, replies: Mapping[PartyId, Any]) -> dict[PartyId, str]:
        """Return the parties whose whole numbers must wait for those of other parties, each with the reason."""
        tally, least, kind = self._asker.tally, self._sums.min_summed, replies_of(step)
        if kind == "values" and not has_one_list(step):
            return {}
        counted = {} if kind == "values" else tally.counted_of(step_name(step))
        entered = {} if kind == "standing" else tally.entered
        whole = [party for party in replies if party not in counted]
        new = [party for party in whole if party not in entered]
        few = f"its first contribution waits for those of at least {least} parties"
        waiting = dict.fromkeys(new, few) if len(new) < least else {}
        missing = {place: p for p, place in entered.items() if p not in counted and p not in replies}
        for party in whole:
            if (other := missing.get(entered.get(party, BEFORE_ALL))) is not None:
                waiting[party] = f"its numbers wait for those of '{other}', with which they are in an earlier total"
        return waiting


def check_hides(step: Step) -> None:
    """Raise `ConfigError` for a step whose single replies would be seen beside secure sums."""
    if not hides_replies(step):
        raise ConfigError(
            f"secure = true hides single parties' replies, and {step_name(step)} asks for them (`each`): use a method "
            "that needs sums only, or set secure = false"
        )
