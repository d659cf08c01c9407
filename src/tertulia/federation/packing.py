"""Messages made smaller for the road, and back, bit for bit.

What is hashed, charged and kept as state is always the message itself; only the bytes that travel are packed, and the
answers in a party's log, in the same way on every engine. Numbers stay what they are (`packed_arrays`): each array is
cut to the bytes that its largest number needs, or to a map of its zeros and the rest, or to differences from the same
array of an earlier message that both sides have, whichever is smallest. Then zstd, where it pays.

Differences are taken from the last question of the same step that a party has answered: it is named by its hash, and
who lacks it says so and gets the message in full. Answers are not sent as differences. Measured on Consensus, where
questions shrink by a quarter for it, answers would by less than a tenth, and the server would have to keep everybody's.

What a later masked sum can carry is decided here, too. Masked numbers are uniform: they have no zeros, no small
differences, and nothing that zstd could find. What remains is a ring just wide enough for the total: counts of n
parties that add up to at most c need log2(c) bits, so 16 or 32 instead of 64. Nothing here is in the way of it: sums
keep fixed shapes, an entry for every topic and word, so that masks can be added to a reply before it is encoded, and
what is random goes as it is. A dense uint32 is as large as a dense float32 then, and a uint16 half of it.

Whatever the bytes, `unpack` gives a message or raises `FormatError`, before it takes more memory than it may. A packed
message has at least a share of the bytes that it holds, so that whoever wants to take memory has to send for it.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import zstandard

from tertulia._arrays import Array
from tertulia.errors import FormatError
from tertulia.federation.packed_arrays import DIFFERENCES, SHORT, Reader, read, section, write

MOST_BYTES = 1 << 30  # of a message, packed or not
_MARK = b"\xfftertul1"  # no message begins like this: its header would have more bytes than there are
_HEAD = struct.Struct("<8s32sQQ")  # mark, hash of the base or zeros, bytes of the message, bytes before its arrays
_NO_BASE = bytes(32)
_MOST_TREE = 1 << 26  # bytes before the arrays
_TOO_LONG = 1 << 28  # bytes; packing takes twice as many again
_GROWTH = 256  # times as large as it came may a message become
_MOST_KEPT = 1 << 23  # bytes of bases: a simulation has them for each of its parties
_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8,
          "I64": 8, "U64": 8}  # fmt: skip


class LackingBase(Exception):
    """A message came as differences from one that this side does not have: it must be sent in full."""


class Base(NamedTuple):
    """A message that the other side has, too."""

    name: str  # SHA-256, in hex
    data: bytes

    @classmethod
    def of(cls, data: bytes) -> Base:
        """A message under its name."""
        return cls(hashlib.sha256(data).hexdigest(), data)


class Bases:
    """The last messages that the other side has, too: one for each step, unless they are short or take much memory."""

    def __init__(self, most_bytes: int = _MOST_KEPT) -> None:
        self._most = most_bytes
        self._kept: dict[str, Base] = {}

    def keep(self, step: str, base: Base) -> None:
        """Remember the last message of a step instead of the one before; the oldest go first."""
        self._kept.pop(step, None)
        if SHORT <= len(base.data) <= self._most:
            self._kept[step] = base
        while sum(len(one.data) for one in self._kept.values()) > self._most:
            self._kept.pop(next(iter(self._kept)))

    def of_step_or_none(self, step: str) -> Base | None:
        """The last message of a step."""
        return self._kept.get(step)

    def find_or_none(self, name: str) -> bytes | None:
        """The message of this name."""
        return next((base.data for base in self._kept.values() if base.name == name), None)


def pack(data: bytes, base: Base | None = None) -> bytes:
    """The bytes that travel for a message: packed ones if they are fewer, else its own."""
    if not SHORT <= len(data) <= _TOO_LONG or (fields := _fields_or_none(data)) is None:
        return data
    head = fields[0].start if fields else len(data)
    before = _arrays(base.data) if base else {}
    parts, differs = section(data[:head]), False
    for number, field in enumerate(fields):
        base_array = before.get((number, field.kind, field.length))
        way, sections = write(field.of(data), field.row, base_array, field.kind[0])
        differs = differs or bool(way & DIFFERENCES)
        parts += [bytes([way]), *sections]
    name = bytes.fromhex(base.name) if base and differs else _NO_BASE
    packed = b"".join([_HEAD.pack(_MARK, name, len(data), head), *parts])
    packed += bytes(max(0, -(-len(data) // _GROWTH) - len(packed)))
    return packed if len(packed) < len(data) else data


def size_of(data: bytes) -> int:
    """How many bytes a message has, or would have by what a packed one says; nothing is unpacked."""
    return int(_HEAD.unpack_from(data)[2]) if data.startswith(_MARK) and len(data) >= _HEAD.size else len(data)


def unpack(data: bytes, find: Callable[[str], bytes | None] = lambda name: None) -> bytes:
    """The message that `pack` was given; `find` knows bases by their names. Raise `LackingBase` if it does not."""
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
    except (ValueError, TypeError, LookupError, AttributeError, struct.error, zstandard.ZstdError) as error:
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
    """Where an array is in a message, and the type of its numbers."""

    start: int
    end: int
    kind: str
    row: int  # numbers along the last axis; 0: there are no rows

    @property
    def length(self) -> int:
        """Its bytes."""
        return self.end - self.start

    def of(self, data: bytes | bytearray) -> Array:
        """Its bits as whole numbers without signs, of its own width."""
        size = _SIZES[self.kind]
        return np.frombuffer(data, dtype=f"<u{size}", count=self.length // size, offset=self.start)


_Key = tuple[int, str, int]  # number, type and bytes: what must be the same for differences to be taken


def _fields_or_none(data: bytes) -> list[_Field] | None:
    """The arrays of a message in their order, if it has the form that `codec.encode` gives it."""
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
