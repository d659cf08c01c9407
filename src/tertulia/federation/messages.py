"""The wire format: the server sends a question, an inquiry or an exchange, and the party sends an answer.

The body of a question holds step, verb and message; the hash of the body identifies the question. The envelope around
it gives the question's place in the run, so that a party can tell a repeat from a change. An inquiry is about the party
itself. It has no place in the run, so it cannot change a method's state or the answer log.

A long word list is sent once. A body names the list by its fingerprint, and the frame includes the words for a party
that may lack them. Long bodies and answers are packed (`packing`); a question's hash is that of its unpacked body.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from tertulia._kinds import FrozenDict, check_fields
from tertulia.corpus import Vocabulary
from tertulia.errors import FormatError
from tertulia.federation.checks import are_words
from tertulia.federation.codec import decode, encode
from tertulia.federation.fields import WordList, field_with, is_message
from tertulia.federation.types import Place, Step, message, step_name
from tertulia.federation.word_lists import SentLists, write_lists

Verb = Literal["sum", "mean", "each", "relay"]
BEFORE_ALL: Place = (-1, 0)
WordLists = Mapping[str, tuple[str, ...]]  # by their fingerprints
NAMED = "\0list"  # replaces a list's words and precedes its fingerprint; no word begins with NUL
_LONG = 32  # words; a shorter list is always sent in full
_MOST_ROUNDS, _MOST_QUESTIONS = 10**8, 10**6  # per run, per round; file names have room for no more
_MOST_FIELDS = 100  # of a reply
_MOST_ENVELOPE = 1 << 16  # bytes; names, places and a hash take a few hundred
LEDGER_DIGEST, DISCLOSURES = "ledger digest", "disclosures"  # the subjects of inquiries


@message
class Ask:
    """The body of a question."""

    verb: str
    step: str
    message: Any


@message
class Answer:
    """A party's answer. Its kind is `ok`, with a reply, or one of those below, `refused`, `failed` or `absent`.

    `behind`: the party has lost answers that the server counts on. `lacking`: it has lost data that were sent before, a
    word list or the base of a packed question; the server then sends the question in full. `wider`: a number does not
    fit the ring of a masked sum; the server then asks with a wider one.
    """

    kind: str
    text: str
    reply: Any


class Content:
    """The unpacked body of a question: hashed, decoded and checked once, also if parties of one process share it.

    They get one and the same message only if nothing in it can change; its arrays are read-only. Any other message is
    decoded for each of them.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._passed: set[Hashable] = set()
        self._complete: tuple[tuple[str, ...], Ask] | None = None

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the body."""
        return hashlib.sha256(self.data).hexdigest()

    def ask(self) -> Ask:
        """Return the decoded body."""
        return _decode_ask(self.data) if self._constant is None else self._constant

    def with_words(self, words: tuple[str, ...]) -> Ask:
        """Return the decoded body with the words of the list that it names."""
        if self._constant is not None and self._complete is not None and self._complete[0] is words:
            return self._complete[1]
        ask = self.ask()
        self._complete = words, dataclasses.replace(ask, message=_with_words(ask.message, words))
        return self._complete[1]

    def check_once(self, check: Callable[[], None], *by: Hashable) -> None:
        """Run a check of the message `by` something, unless it has passed the very same check before."""
        if by not in self._passed:
            check()
            self._passed.add(by)

    @cached_property
    def _constant(self) -> Ask | None:
        """The decoded body if it cannot change, else None."""
        ask = _decode_ask(self.data)
        return ask if _freeze(ask) else None


def _decode_ask(data: bytes) -> Ask:
    ask = decode(data)
    if not isinstance(ask, Ask):
        raise FormatError(f"a question must hold an Ask, not a {type(ask).__name__}")
    return ask


def _freeze(value: Any) -> bool:
    """Make the arrays of a decoded value read-only; tell whether nothing else in it can change."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return True
    if isinstance(value, BaseModel):
        return bool(value.model_config.get("frozen")) and all(_freeze(part) for _, part in value)
    if is_message(value):
        return all(_freeze(part) for part in vars(value).values())
    if isinstance(value, tuple):
        return are_words(value) or all(map(_freeze, value))
    if isinstance(value, FrozenDict):
        return all(map(_freeze, value.values()))
    return value is None or isinstance(value, bool | int | float | str)


@dataclass(frozen=True)
class Question:
    """One question to one party."""

    run: str
    place: Place
    previous: Place  # the last question that this party is known to have answered
    safe: int  # the server will never ask again for answers of rounds before this one
    durable: bool  # must the party write the answer to disk before it sends it?
    body: bytes
    plan: str = ""  # the hash of the agreed plan; empty is allowed in a simulation
    lists: WordLists = field(default_factory=dict)  # lists that the party may lack
    packs: bool = False  # may the answer be packed?
    counted: Place = BEFORE_ALL  # the place of this party's last reply to this step that is in a sum
    attempt: int = -1  # at a masked sum; -1: the reply is not to be masked
    widths: tuple[int, ...] = ()  # of the rings of a masked reply, one for each field

    @cached_property
    def content(self) -> Content:
        """The body, once it is unpacked."""
        return Content(self.body)

    def unpacked(self, content: Content) -> Question:
        """Return the question with this body in place of the packed one."""
        found = dataclasses.replace(self, body=content.data)
        vars(found)["content"] = content  # of several questions, perhaps
        return found

    @property
    def hash(self) -> str:
        """The hash of the body, which does not depend on the place."""
        return self.content.hash

    @property
    def key(self) -> str:
        """The key of the answer, which depends on the body and on the reply of this party that was counted last."""
        return self.hash if self.counted == BEFORE_ALL else f"{self.hash}@{self.counted[0]}.{self.counted[1]}"

    def to_bytes(self) -> bytes:
        """Encode the frame that is sent."""
        lists, places = write_lists(self.lists), [self.place, self.previous, self.counted]
        masking = [self.attempt, *self.widths]
        envelope = [self.run, *places, self.safe, self.durable, self.plan, len(lists), self.packs, masking]
        return _frame(envelope, lists + self.body)


@dataclass(frozen=True)
class Inquiry:
    """A request that a party's host answers itself, without any method."""

    run: str
    about: str  # LEDGER_DIGEST or DISCLOSURES
    entry: int | None = None  # the ledger entry whose digest is asked for; None: the last

    def to_bytes(self) -> bytes:
        """Encode the frame that is sent."""
        return _frame({"run": self.run, "about": self.about, "entry": self.entry}, b"")


@dataclass(frozen=True)
class Exchange:
    """A message of secure sums (`secure.messages`), which a party's host answers without a method."""

    run: str
    plan: str
    body: bytes = b""

    def to_bytes(self) -> bytes:
        """Encode the frame that is sent."""
        return _frame({"run": self.run, "plan": self.plan, "exchange": True}, self.body)


Frame = Question | Inquiry | Exchange


def _frame(envelope: Any, body: bytes) -> bytes:
    head = json.dumps(envelope).encode()
    return len(head).to_bytes(4, "little") + head + body


def read_frame(frame: bytes) -> Frame:
    """Read a question, an inquiry or an exchange from a frame; only the short envelope is parsed."""
    try:
        size = 4 + int.from_bytes(frame[:4], "little")
        if size > _MOST_ENVELOPE:
            raise FormatError("an envelope is too long")
        envelope = json.loads(frame[4:size])
        if isinstance(envelope, dict) and envelope.pop("exchange", False):
            asked: Frame = Exchange(**envelope, body=frame[size:])
            check_fields(Exchange, vars(asked))
        elif isinstance(envelope, dict):
            asked = Inquiry(**envelope)
            check_fields(Inquiry, vars(asked))
        else:
            run, *places, safe, durable, plan, lists_size, packs, (attempt, *widths) = envelope
            place, previous, counted = ((round_, ordinal) for round_, ordinal in places)
            lists, body = _sections(frame, size, lists_size)
            masking = (attempt, tuple(widths))
            asked = Question(run, place, previous, safe, durable, body, plan, lists, packs, counted, *masking)
            check_fields(Question, vars(asked) | {"lists": {}})  # the lists are read after run and plan are checked
            _check_places(asked)
        asked.run.encode()  # a lone surrogate cannot be encoded
        return asked
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise FormatError(f"this frame of {len(frame)} bytes is no question, inquiry or exchange") from error


def _sections(frame: bytes, start: int, size: int) -> tuple[SentLists, bytes]:
    """Return the word lists and the body, which follow the envelope."""
    if type(size) is not int or not 0 <= size <= len(frame) - start:
        raise FormatError("the word lists are cut short")
    return SentLists(memoryview(frame)[start : start + size]), frame[start + size :]


def _check_places(asked: Question) -> None:
    """Raise `FormatError` if a place is impossible in any run, or too large for file names."""
    rounds, ordinals = zip(asked.place, asked.previous, asked.counted, strict=True)
    fits = max(*rounds, asked.safe) < _MOST_ROUNDS and max(ordinals) < _MOST_QUESTIONS and min(ordinals) >= 0
    earlier = asked.previous >= BEFORE_ALL and BEFORE_ALL <= asked.counted < asked.place
    masks = len(asked.widths) <= _MOST_FIELDS and -1 <= asked.attempt < _MOST_ROUNDS
    if not (fits and asked.place >= (0, 0) and earlier and asked.safe > -2 and masks):
        raise FormatError("a question's place is outside of any run")


def body(verb: Verb, step: Step, message: Any) -> tuple[bytes, WordLists]:
    """Encode the body of a question, and return it with the word list that it names, if any."""
    lists: WordLists = {}
    name = _word_list_field(message)
    words = () if name is None else getattr(message, name)
    if name is not None and len(words) >= _LONG:
        lists = {fingerprint(words): words}
        message = dataclasses.replace(message, **{name: (NAMED, *lists)})
    return encode(Ask(verb, step_name(step), message)), lists


def named_or_none(message: Any) -> str | None:
    """Return the fingerprint by which a message names its word list, None if it holds the words."""
    name = _word_list_field(message)
    words: tuple[str, ...] = () if name is None else getattr(message, name)
    return words[1] if len(words) == 2 and words[0] == NAMED else None


def _with_words(message: Any, words: tuple[str, ...]) -> Any:
    """Return a copy of a message in which words replace their fingerprint."""
    return dataclasses.replace(message, **{str(_word_list_field(message)): words})


def _word_list_field(message: Any) -> str | None:
    name = field_with(type(message), WordList) if is_message(message) else None
    return name if name is not None and isinstance(getattr(message, name), tuple) else None


def fingerprint(words: tuple[str, ...]) -> str:
    """Return the fingerprint that names a word list."""
    return Vocabulary.of(words).fingerprint
