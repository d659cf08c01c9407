"""Lossless compression of messages between server and parties.

Hashes, charges and states always refer to the message itself. Only the bytes that travel are packed, and the answers in
a party's log, in the same way on every engine. Packing changes no number (`packed_arrays`). Each array is written in
the smallest of several ways: the bytes that its largest number needs; a bitmap of its zeros and the other numbers; or
the differences from the same array of an earlier message that both sides have, the *base*. Then zstd, where it pays.

The base of a question is the last question of the same step that the party has answered. The packed message names it by
its hash; a party that lacks it says so, and gets the message in full. Answers have no base: on Consensus, where
questions shrink by a quarter this way, answers would shrink by less than a tenth, and the server would have to keep the
answers of all parties.

A masked sum stays possible. Masked numbers are uniform, so they have no zeros and no small differences, and zstd cannot
compress them. What can be saved is the width of the ring: counts of all parties that add up to at most c need log2(c)
bits, so 16 or 32 instead of 64. Sums keep fixed shapes, with an entry for every topic and word, so that masks can be
added to a reply before it is encoded.

`unpack` returns a message or raises `FormatError` for any bytes, and checks sizes before it allocates memory. A packed
message must have a minimum share of the bytes that it unpacks to, so that a sender cannot cheaply exhaust memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import struct
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from tertulia._arrays import Array
from tertulia._kinds import check_parts
from tertulia.errors import FormatError
from tertulia.federation.messages import Answer, Ask, Content, Question
from tertulia.federation.packed_arrays import DIFFERENCES, SHORT, Reader, compressor, read, section, write
from tertulia.federation.types import PartyId
from tertulia.federation.word_lists import SentLists
from tertulia.federation.zstd import ZstdError

_T = TypeVar("_T")
MOST_BYTES = 1 << 30  # of a message, packed or not
_MARK = b"\xfftertul1"  # no message begins like this: its header would have more bytes than there are
_HEAD = struct.Struct("<8s32sQQ")  # mark, hash of the base or zeros, bytes of the message, bytes before its arrays
_NO_BASE = bytes(32)
_MOST_TREE = 1 << 26  # bytes before the arrays
_TOO_LONG = 1 << 28  # bytes; packing would need twice as many in addition
_GROWTH = 256  # the largest ratio of a message to its packed bytes
_MOST_KEPT = 1 << 23  # bytes of bases: a simulation keeps them for each of its parties
_LATELY = 4  # questions, or lists, that parties of a process share
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8,
          "I64": 8, "U64": 8}  # fmt: skip


class LackingBase(Exception):
    """The base of a packed message is missing on this side: the message must be sent in full."""


class Base(NamedTuple):
    """A message that both sides have."""

    name: str  # SHA-256, in hex
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Base:
        """Name a message by its hash."""
        return cls(hashlib.sha256(data).hexdigest(), data)


class Bases:
    """The last message of each step that both sides have, unless it is short or takes too much memory."""

    def __init__(self, most_bytes: int = _MOST_KEPT) -> None:
        self._most = most_bytes
        self._kept: dict[str, Base] = {}

    def keep(self, step: str, base: Base) -> None:
        """Store the last message of a step in place of the one before; drop the oldest beyond the limit."""
        self._kept.pop(step, None)
        if SHORT <= len(base.data) <= self._most:
            self._kept[step] = base
        while sum(len(one.data) for one in self._kept.values()) > self._most:
            self._kept.pop(next(iter(self._kept)))

    def of_step_or_none(self, step: str) -> Base | None:
        """Return the last message of a step."""
        return self._kept.get(step)

    def find_or_none(self, name: str) -> bytes | None:
        """Return the message of this name."""
        return next((base.data for base in self._kept.values() if base.name == name), None)


def pack(data: bytes, base: Base | None = None) -> bytes:
    """Pack a message; return it unchanged if that saves nothing."""
    if not SHORT <= len(data) <= _TOO_LONG or (fields := _fields_or_none(data)) is None:
        return data
    head = fields[0].start if fields else len(data)
    before = _arrays(base.data) if base else {}
    zstd = compressor()
    parts, differs = section(data[:head], zstd), False
    for number, field in enumerate(fields):
        base_array = before.get((number, field.kind, field.length))
        way, sections = write(field.of(data), field.row, base_array, field.kind[0], zstd)
        differs = differs or bool(way & DIFFERENCES)
        parts += [bytes([way]), *sections]
    name = bytes.fromhex(base.name) if base and differs else _NO_BASE
    packed = b"".join([_HEAD.pack(_MARK, name, len(data), head), *parts])
    packed += bytes(max(0, -(-len(data) // _GROWTH) - len(packed)))
    return packed if len(packed) < len(data) else data


def size_of(data: bytes) -> int:
    """Return the size of a message, or the size that a packed one claims to unpack to."""
    return int(_HEAD.unpack_from(data)[2]) if data.startswith(_MARK) and len(data) >= _HEAD.size else len(data)


def unpack(data: bytes, find: Callable[[str], bytes | None] = lambda name: None) -> bytes:
    """Undo `pack`; `find` returns a base by its name. Raise `LackingBase` if the base is missing."""
    if isinstance(data, Packed):
        return data.message
    if not data.startswith(_MARK):
        return data
    total = size_of(data)
    if len(data) < _HEAD.size or total > min(MOST_BYTES, _GROWTH * len(data)):
        raise FormatError(f"{len(data)} packed bytes cannot be a message of {total} bytes")
    name = _HEAD.unpack_from(data)[1]
    base = None if name == _NO_BASE else find(name.hex())
    if name != _NO_BASE and base is None:
        raise LackingBase
    try:
        return _unpack(data, total, _arrays(base) if base else {})
    except (ValueError, TypeError, LookupError, AttributeError, struct.error, ZstdError) as error:
        raise FormatError(f"these {len(data)} bytes are no packed message ({error})") from error
    except (RecursionError, MemoryError, OverflowError) as error:
        raise FormatError(f"these {len(data)} bytes are no packed message") from error


def _unpack(data: bytes, total: int, before: dict[_Key, Array]) -> bytes:
    reader, size = Reader(data, _HEAD.size), _HEAD.unpack_from(data)[3]
    if size > min(8 + _MOST_TREE, total):
        raise ValueError("its header is too long")
    head = bytes(reader.section(size))
    fields = _fields(head)
    if (fields[0].start if fields else total) != size or (fields[-1].end if fields else size) != total:
        raise ValueError("its arrays have another size")
    message = bytearray(total)
    message[:size] = head
    for number, field in enumerate(fields):
        read(reader, field.of(message), field.row, before.get((number, field.kind, field.length)))
    return bytes(message)


# --- the arrays of a message --------------------------------------------------------------------------------------


class _Field(NamedTuple):
    """The position of an array in a message, and the type of its numbers."""

    start: int
    end: int
    kind: str
    row: int  # length of the last axis; 0 for fewer than two axes

    @property
    def length(self) -> int:
        """The number of bytes."""
        return self.end - self.start

    def of(self, data: bytes | bytearray) -> Array:
        """View the array as unsigned integers of its own width."""
        size = _SIZES[self.kind]
        return np.frombuffer(data, dtype=f"<u{size}", count=self.length // size, offset=self.start)


_Key = tuple[int, str, int]  # number, type and bytes of an array: equal ones can be subtracted


def _fields_or_none(data: bytes) -> list[_Field] | None:
    """Return the arrays of a message in order, if `codec.encode` wrote it."""
    try:
        fields = _fields(data)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return fields if not fields or fields[-1].end == len(data) else None


def _fields(data: bytes) -> list[_Field]:
    size = int.from_bytes(data[:8], "little")
    if size > min(_MOST_TREE, len(data) - 8):
        raise ValueError("no header")
    found, start = [], 8 + size
    check_parts(data[8:start])
    tensors = [one for name, one in json.loads(data[8:start]).items() if name != "__metadata__"]
    for tensor in sorted(tensors, key=lambda one: one["data_offsets"]):
        first, last = (int(offset) + 8 + size for offset in tensor["data_offsets"])
        shape = [int(size) for size in tensor["shape"]]
        if not first == start <= last or last - first != math.prod(shape) * _SIZES[tensor["dtype"]]:
            raise ValueError("arrays that do not follow each other")
        found.append(_Field(first, last, tensor["dtype"], shape[-1] if len(shape) > 1 else 0))
        start = last
    return found


def _arrays(message: bytes) -> dict[_Key, Array]:
    fields = _fields_or_none(message) or []
    return {(i, field.kind, field.length): field.of(message) for i, field in enumerate(fields)}


# --- the two sides ------------------------------------------------------------------------------------------------


class ServerPacking:
    """The server's side: the questions that each party is known to have.

    A base is a question that the party has answered to this process. A party that has lost it answers `lacking`, so
    nothing of this needs to survive a restart of the server.
    """

    def __init__(self) -> None:
        self._had: dict[PartyId, Bases] = {}

    def pack(self, step: str, bodies: Mapping[PartyId, bytes]) -> dict[PartyId, bytes]:
        """Pack the bodies of a step's questions; equal ones are packed once."""
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
        """Store the questions of the parties that have answered, as bases."""
        bases: dict[int, Base] = {}
        for party, answer in answers.items():
            if answer.kind == "ok":
                body = bodies[party]
                if id(body) not in bases:
                    bases[id(body)] = Base.of(body)
                self._had.setdefault(party, Bases()).keep(step, bases[id(body)])

    def forget(self, party: PartyId) -> None:
        """Forget the bases of a party that has lost them."""
        self._had.pop(party, None)


class Contents:
    """The last questions and word lists that several parties of a process got, found by the bytes that travelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the first party unpacks, others wait for it
        self._opened: dict[bytes, Content] = {}
        self._lists: dict[bytes, SentLists] = {}

    def open(self, packed: bytes, find: Callable[[str], bytes | None]) -> Content:
        """Unpack a body, or return what it was unpacked to before."""
        with self._lock:
            found = self._opened.get(packed)
            if found is None:
                found = Content(unpack(packed, find))
                if len(found.data) <= _MOST_KEPT:
                    _keep_last(self._opened, packed, found)
            return found

    def same_lists(self, lists: SentLists) -> SentLists:
        """Return equal lists that another party got before, if any: they may be decoded already."""
        with self._lock:
            sent = bytes(lists.data)
            if sent not in self._lists:
                _keep_last(self._lists, sent, SentLists(memoryview(sent)))
            return self._lists[sent]


def _keep_last(kept: dict[bytes, _T], key: bytes, value: _T) -> None:
    kept[key] = value
    if len(kept) > _LATELY:
        del kept[next(iter(kept))]


class Packed(bytes):
    """A packed answer that remembers the message: a server in the same process need not unpack it."""

    message: bytes


class PartyPacking:
    """A party's side: the last question of each step, in memory, as a base of the next.

    A party that was restarted has none; it answers `lacking`, and gets the question in full. Parties of one process may
    share `contents`.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        self._asked = Bases()
        self._contents = contents

    @property
    def shares(self) -> bool:
        """Whether server and parties are in one process."""
        return self._contents is not None

    def unpack(self, question: Question) -> Question:
        """Unpack a question; raise `LackingBase` if its base is missing."""
        if self._contents is None:
            return question.unpacked(Content(unpack(question.body, self._asked.find_or_none)))
        found = question.unpacked(self._contents.open(question.body, self._asked.find_or_none))
        if isinstance(question.lists, SentLists) and question.lists.data:
            found = dataclasses.replace(found, lists=self._contents.same_lists(question.lists)).unpacked(found.content)
        return found

    def keep(self, question: Question, ask: Ask) -> None:
        """Store a question that is being answered, as a base."""
        self._asked.keep(ask.step, Base(question.hash, question.body))

    def pack(self, answer: bytes, question: Question) -> bytes:
        """Pack an answer, if the question allows it."""
        if not question.packs:
            return answer
        packed = pack(answer)
        if self._contents is None or len(answer) > _MOST_KEPT:
            return packed
        found = Packed(packed)
        found.message = answer
        return found
