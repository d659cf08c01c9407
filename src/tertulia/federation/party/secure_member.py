"""A party's half of everything that secure sums hide: masked replies, notes among members, and agreed words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.checks import hides_replies
from tertulia.federation.messages import Question
from tertulia.federation.party.agreed_words import AgreedWords
from tertulia.federation.party.member_keys import RULE, MemberKeys
from tertulia.federation.party.member_notes import MemberNotes
from tertulia.federation.party.secure_sums import SecureSums
from tertulia.federation.secure.messages import Committed, ListedSum, SealedNotes, SignedNotes
from tertulia.federation.types import PartyId, Step

if TYPE_CHECKING:
    from tertulia.federation.plan import Plan


class SecureMember:
    """One member of a run with secure sums."""

    def __init__(self, directory: Path, member: PartyId, run: str, plan: Plan, *, durable: bool) -> None:
        self.keys = MemberKeys(directory, member, run, plan, durable=durable)
        self.sums = SecureSums(directory, self.keys, plan, durable=durable)
        self.notes = MemberNotes(directory, self.keys, durable=durable)
        self.words = AgreedWords(directory, self.keys, durable=durable)

    def exchange(self, message: Any) -> Any:
        """Answer a message of the protocol."""
        if isinstance(message, Committed):
            return self.notes.reveal(message)
        if isinstance(message, SealedNotes):
            return self.notes.open_all(message)
        if isinstance(message, SignedNotes):
            return self.notes.accept(message)
        if isinstance(message, ListedSum):
            return self.sums.accept_list(message)
        return self.keys.exchange(message)

    def check_question(self, question: Question, step: Step, verb: str) -> None:
        """Refuse, before a step runs, a question whose answer would show what secure sums hide."""
        masked = verb in ("sum", "mean")
        if masked != (question.attempt >= 0):
            raise FormatError("sums are masked in this run, and nothing else is")
        if masked:
            self.sums.check_question(question, step)
        elif verb == "each" and not hides_replies(step):
            raise PolicyRefusal(RULE, "single replies stay here: the run has secure sums")

    def hide(self, question: Question, step: Step, verb: str, reply: Any) -> Any:
        """Return what leaves in place of a reply."""
        if verb in ("sum", "mean"):
            return self.sums.mask(question, step, reply)
        return self.notes.commit_to(question, step, reply) if verb == "relay" else reply

    def forget_before(self, round_: int) -> None:
        """Drop records of rounds that the server will not ask for again."""
        self.sums.records.forget_before(round_)
