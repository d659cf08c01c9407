"""What crosses between server and party: a question or an inquiry, its answer, and nothing else.

A question's body (step, verb, message) is what it asks; its hash identifies it. The envelope around it says where
in the run it stands, so that a party can tell a repeat from a change. An inquiry is about the party itself. It has no
place in the run, so it cannot move a method's state or the answer log.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from tertulia.errors import FormatError
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import Step, message, step_name

Verb = Literal["sum", "mean", "each"]
Place = tuple[int, int]  # (round, ordinal within the round)
BEFORE_ALL: Place = (-1, 0)
LEDGER_DIGEST, DISCLOSURES = "ledger digest", "disclosures"  # what inquiries are about


@message
class Ask:
    """The body of a question."""

    verb: str
    step: str
    message: Any


@message
class Answer:
    """A party's answer: a reply, or why there is none (`refused`, `failed`, `absent`, `behind`)."""

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

    @cached_property
    def hash(self) -> str:
        """What is asked, whatever the place. Bodies may be long, so it is computed once."""
        return hashlib.sha256(self.body).hexdigest()

    def to_bytes(self) -> bytes:
        """The frame that travels."""
        return _frame([self.run, self.place, self.previous, self.safe, self.durable], self.body)

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
            entry = envelope.get("entry")
            return Inquiry(envelope["run"], envelope["about"], None if entry is None else int(entry))
        run, place, previous, safe, durable = envelope
        return Question(run, (place[0], place[1]), (previous[0], previous[1]), safe, durable, frame[size:])
    except (ValueError, TypeError, LookupError) as error:
        raise FormatError(f"this frame of {len(frame)} bytes is neither a question nor an inquiry") from error


def body(verb: Verb, step: Step, message: Any) -> bytes:
    """Encode what is asked, once for all parties that are asked the same."""
    return encode(Ask(verb, step_name(step), message))
