"""The arrays of a packed message: each is written in few bytes, and read again bit for bit.

An array is treated as unsigned integers of its own width, also if it holds floats, so that nothing is rounded. It is
written in sections: a bitmap of its non-zero numbers, if most are zero, and then planes: the lowest bytes of all
numbers, the second lowest and so on, up to the highest byte of the largest number. Bytes of the same plane are similar,
so each section is compressed by itself.
"""

from __future__ import annotations

import struct

import numpy as np

from tertulia._arrays import Array
from tertulia.federation import zstd as frames
from tertulia.federation.zstd import Compressor

SHORT = 1 << 10  # bytes; shorter arrays are not worth packing
# The flags of the way in which an array is written; the lower half of the byte is the number of planes.
DIFFERENCES = 0x10  # from the same array of the base
_SIGNS = 0x20  # zigzag: 0, -1, 1, -2 ... as 0, 1, 2, 3 ..., so that small negative numbers become small
_ZEROS = 0x40  # a bitmap of the non-zero numbers comes first
_WHOLE = 0x80  # in one piece, for numbers that repeat: zstd finds them only if their bytes stay together
_USUAL = _WHOLE | _ZEROS  # each row's minimum, a bitmap of the other numbers, their distinct values, and their indices
_LENGTH = struct.Struct("<Q")
_LONGEST_ROW = 1 << 18  # numbers; the sample consists of whole rows
_SAMPLE = 1 << 14  # numbers of the sample by which ways are compared
_PAYS = 0.9  # zstd takes time: it must save a tenth
_FLOATS_PAY = 0.6  # compressing weights takes time: for a smaller saving, a fast line is faster
_LEVEL = 1  # higher levels save nothing on counts


def compressor() -> Compressor:
    """Return a compressor for the sections of a message: to make one takes longer than to compress a short section."""
    return frames.compressor(_LEVEL)


def write(x: Array, row: int, before: Array | None, kind: str, zstd: Compressor) -> tuple[int, list[bytes]]:
    """Write an array in the best way for a sample from its middle; return the way and the sections.

    `row` is the length of its last axis, and `kind` the first letter of its type.
    """
    ways = [_SIGNS if kind == "I" else 0]
    if kind == "F":
        ways.append(_WHOLE)
        if 1 < row < min(len(x), _LONGEST_ROW):  # topics: words without counts have equal probabilities
            ways.append(_USUAL)
    if before is not None:
        ways.append(DIFFERENCES | _SIGNS)
    if x.nbytes < SHORT:
        ways = [_WHOLE]
    if len(ways) == 1:
        return _write_as(ways[0], x, row, before, zstd)
    start = max(0, (len(x) - _SAMPLE) // 2)
    some = slice(start, start + _SAMPLE)
    if _USUAL in ways:
        some = slice(start // row * row, (start // row + -(-_SAMPLE // row)) * row)
    tried = [_write_as(way, x[some], row, None if before is None else before[some], zstd) for way in ways]
    sizes = [sum(map(len, sections)) for _, sections in tried]
    best = sizes.index(min(sizes))
    if kind == "F" and sizes[best] > _FLOATS_PAY * x[some].nbytes:
        return _WHOLE | x.itemsize, [_LENGTH.pack(x.nbytes), x.tobytes()]
    return tried[best] if len(x[some]) == len(x) else _write_as(ways[best], x, row, before, zstd)


def _write_as(way: int, x: Array, row: int, before: Array | None, zstd: Compressor) -> tuple[int, list[bytes]]:
    if way == _USUAL:
        return _USUAL, _write_usual(x, row, zstd)
    if way & _WHOLE:
        return way | x.itemsize, section(x.tobytes(), zstd)
    if way & DIFFERENCES and before is not None:
        x = x - before  # modulo the width, which is lossless
    sections: list[bytes] = []
    filled = x != 0
    if 2 * np.count_nonzero(filled) < len(x):
        way |= _ZEROS
        sections += section(np.packbits(filled).tobytes(), zstd)
        x = x[np.flatnonzero(filled)]
    if way & _SIGNS:
        signed = x.view(f"<i{x.itemsize}")
        if way & DIFFERENCES or signed.min(initial=0) < 0:
            x = ((signed << 1) ^ (signed >> (8 * x.itemsize - 1))).view(x.dtype)
        else:
            way &= ~_SIGNS
    width = (int(x.max(initial=0)).bit_length() + 7) // 8
    planes = x.view(np.uint8).reshape(-1, x.itemsize)
    for plane in range(width):
        sections += section(planes[:, plane].tobytes(), zstd)
    return way | width, sections


def _write_usual(x: Array, row: int, zstd: Compressor) -> list[bytes]:
    rows = x.reshape(-1, row)
    least = rows.min(axis=1)
    other = rows != least[:, None]
    values, codes = np.unique(rows[other], return_inverse=True)
    steps = np.diff(values, prepend=values.dtype.type(0))
    sections = [*section(least.tobytes(), zstd), *section(np.packbits(other).tobytes(), zstd)]
    sections.append(_LENGTH.pack(len(values)))
    for part in (steps, codes.astype(x.dtype)):
        way, written = _write_as(0, part, row, None, zstd)
        sections += [bytes([way]), *written]
    return sections


def section(raw: bytes, zstd: Compressor) -> list[bytes]:
    """Write a section: its length and its bytes, compressed by zstd if that makes it shorter."""
    middle = len(raw) // 2
    sample = raw[middle : middle + _SAMPLE]
    pays = len(raw) > _LENGTH.size and len(zstd.compress(sample)) < _PAYS * len(sample)
    compressed = zstd.compress(raw) if pays else raw
    best = compressed if len(compressed) < len(raw) else raw
    return [_LENGTH.pack(len(best)), best]


class Reader:
    """A reader of packed bytes; malformed ones raise `ValueError` or `ZstdError`."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = memoryview(data)
        self._at = start

    def take(self, size: int) -> memoryview:
        """Return the next bytes."""
        self._at += size
        if self._at > len(self._data):
            raise ValueError("it is cut short")
        return self._data[self._at - size : self._at]

    def section(self, size: int) -> bytes | memoryview:
        """Return the next section, decompressed; check that it has this size before allocating memory."""
        stored = self.take(_LENGTH.unpack(self.take(_LENGTH.size))[0])
        if len(stored) == size:
            return stored
        if len(stored) > size or frames.content_size(stored) != size:
            raise ValueError("a section has another size")
        return frames.decompress(stored, size)


def read(reader: Reader, out: Array, row: int, before: Array | None) -> None:
    """Fill an array with the numbers that `write` wrote."""
    way = reader.take(1)[0]
    if way == _USUAL and row > 1:
        _read_usual(reader, out, row)
        return
    if way & _WHOLE:
        out.view(np.uint8)[:] = np.frombuffer(reader.section(out.nbytes), np.uint8)
        return
    width, count, places = way & 0xF, len(out), None
    if width > out.itemsize or (way & DIFFERENCES and before is None):
        raise ValueError("an array that cannot be")
    if way & _ZEROS:
        bits = np.frombuffer(reader.section(-(-count // 8)), np.uint8)
        places = np.flatnonzero(np.unpackbits(bits, count=count).view(np.bool_))  # of bytes it takes four times as long
        count = len(places)
    alone = places is None and not way & (_SIGNS | DIFFERENCES)  # plain numbers: no second array is needed
    x = out if alone else np.empty(count, out.dtype)
    x[:] = 0
    planes = x.view(np.uint8).reshape(-1, x.itemsize)
    for plane in range(width):
        planes[:, plane] = np.frombuffer(reader.section(count), np.uint8)
    if alone:
        return
    if way & _SIGNS:
        x = (x >> 1) ^ (0 - (x & 1))
    if before is not None and way & DIFFERENCES:
        x += before if places is None else before[places]
        out[:] = before
    else:
        out[:] = 0
    out[slice(None) if places is None else places] = x


def _read_usual(reader: Reader, out: Array, row: int) -> None:
    rows = out.reshape(-1, row)
    least = np.frombuffer(reader.section(len(rows) * out.itemsize), out.dtype)
    bits = np.frombuffer(reader.section(-(-len(out) // 8)), np.uint8)
    places = np.flatnonzero(np.unpackbits(bits, count=len(out)).view(np.bool_))
    (distinct,) = _LENGTH.unpack(reader.take(_LENGTH.size))
    if distinct > len(places):
        raise ValueError("more numbers in the list than there are places")
    steps, codes = np.zeros(distinct, out.dtype), np.zeros(len(places), out.dtype)
    for part in (steps, codes):
        read(reader, part, 0, None)
    rows[:] = least[:, None]
    out[places] = np.cumsum(steps, dtype=out.dtype)[codes]
