"""What crosses between server and party: a question or an inquiry, its answer, and nothing else.

A question's body (step, verb, message) is what it asks; its hash identifies it. The envelope around it says where
in the run it stands, so that a party can tell a repeat from a change. An inquiry is about the party itself. It has no
place in the run, so it cannot move a method's state or the answer log.

A long word list travels once: a body names it by its fingerprint, and the envelope brings it to who may lack it. Long
bodies and answers travel packed (`packing`); the hash of a question is that of its body as it was before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal

from tertulia._kinds import check_fields
from tertulia.corpus import Vocabulary
from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import Step, message, step_name

Verb = Literal["sum", "mean", "each"]
Place = tuple[int, int]  # (round, ordinal within the round)
BEFORE_ALL: Place = (-1, 0)
WordLists = Mapping[str, tuple[str, ...]]  # by their fingerprints
NAMED = "\0list"  # in place of a list's words, before its fingerprint; no word begins like this
_LONG = 32  # words; a shorter list is not worth a name
_MOST_ROUNDS, _MOST_QUESTIONS = 10**8, 10**6  # of a run, of a round: so far can files be numbered
LEDGER_DIGEST, DISCLOSURES = "ledger digest", "disclosures"  # what inquiries are about


@message
class Ask:
    """The body of a question."""

    verb: str
    step: str
    message: Any


@message
class Answer:
    """A party's answer: a reply, or why there is none: `refused`, `failed`, `absent`, `behind`, or `lacking` something.

    What a party may lack is what was sent to it before: a word list, or the question from which this one differs.
    """

    kind: str
    text: str
    reply: Any


@dataclass(frozen=True)
class Question:
    """One question to one party."""

    run: str
    place: Place
    previous: Place  # the last question that this party is known to have answered
    safe: int  # answers to rounds before this one will never be asked for again
    durable: bool  # must the answer survive a crash before it is sent?
    body: bytes
    plan: str = ""  # the hash of the plan that all have agreed to; a simulation may leave it out
    lists: WordLists = field(default_factory=dict)  # those that the party may not have yet
    packs: bool = False  # may the answer be packed?

    @cached_property
    def hash(self) -> str:
        """What is asked, whatever the place. Bodies may be long, so it is computed once."""
        return hashlib.sha256(self.body).hexdigest()

    def to_bytes(self) -> bytes:
        """The frame that travels."""
        lists = dict(self.lists)
        envelope = [self.run, self.place, self.previous, self.safe, self.durable, self.plan, lists, self.packs]
        return _frame(envelope, self.body)

    def ask(self) -> Ask:
        """The decoded body."""
        body = decode(self.body)
        if not isinstance(body, Ask):
            raise FormatError(f"a question must hold an Ask, not a {type(body).__name__}")
        return body


@dataclass(frozen=True)
class Inquiry:
    """What a party's host answers itself, whatever the methods."""

    run: str
    about: str  # LEDGER_DIGEST or DISCLOSURES
    entry: int | None = None  # of the ledger, whose digest is asked for; None: the last

    def to_bytes(self) -> bytes:
        """The frame that travels."""
        return _frame({"run": self.run, "about": self.about, "entry": self.entry}, b"")


def _frame(envelope: Any, body: bytes) -> bytes:
    head = json.dumps(envelope).encode()
    return len(head).to_bytes(4, "little") + head + body


def read_frame(frame: bytes) -> Question | Inquiry:
    """The question or inquiry that a frame carries."""
    try:
        size = 4 + int.from_bytes(frame[:4], "little")
        envelope = json.loads(frame[4:size])
        if isinstance(envelope, dict):
            asked: Question | Inquiry = Inquiry(**envelope)
            check_fields(Inquiry, vars(asked))
        else:
            run, (round_, ordinal), (before, last), safe, durable, plan, given, packs = envelope
            lists = {fingerprint: tuple(words) for fingerprint, words in given.items()}
            asked = Question(run, (round_, ordinal), (before, last), safe, durable, frame[size:], plan, lists, packs)
            check_fields(Question, vars(asked))
            _check_places(asked)
        asked.run.encode()  # half a character is no text
        return asked
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise FormatError(f"this frame of {len(frame)} bytes is neither a question nor an inquiry") from error


def _check_places(asked: Question) -> None:
    """Raise `FormatError` if places lie outside of any run, or cannot be numbered."""
    rounds, ordinals = zip(asked.place, asked.previous, strict=True)
    fits = max(*rounds, asked.safe) < _MOST_ROUNDS and max(ordinals) < _MOST_QUESTIONS
    if not (fits and asked.place >= (0, 0) and min(ordinals) >= 0 and asked.previous >= BEFORE_ALL and asked.safe > -2):
        raise FormatError("a question's place is outside of any run")


def body(verb: Verb, step: Step, message: Any) -> tuple[bytes, WordLists]:
    """Encode what is asked, once for all parties that are asked the same, and the word list that it names."""
    lists: WordLists = {}
    if _has_words(message) and len(message.words) >= _LONG:
        lists = {fingerprint(message.words): message.words}
        message = dataclasses.replace(message, words=(NAMED, *lists))
    return encode(Ask(verb, step_name(step), message)), lists


def named_or_none(message: Any) -> str | None:
    """The fingerprint by which a message names its word list, if it does."""
    words: tuple[str, ...] = message.words if _has_words(message) else ()
    return words[1] if len(words) == 2 and words[0] == NAMED else None


def _has_words(message: Any) -> bool:
    fields = dataclasses.fields(message) if dataclasses.is_dataclass(message) else ()
    return any(field.name == "words" for field in fields) and isinstance(message.words, tuple)


@lru_cache(maxsize=8)
def fingerprint(words: tuple[str, ...]) -> str:
    """A word list's name."""
    return Vocabulary(words).fingerprint
