"""One array of a packed message: how it is written in the fewest bytes, and read again, bit for bit.

An array is taken as whole numbers of its own width, whatever its bits mean, so that nothing can be rounded. It is
written in sections: a map of what is not zero if most is, then the lowest bytes of all numbers, the next lowest and so
on, as many as the largest number has. Bytes of the same weight are alike, and each section is squeezed by itself.
"""

from __future__ import annotations

import struct

import numpy as np
import zstandard

from tertulia._arrays import Array

SHORT = 1 << 10  # bytes; what is shorter is not worth any trouble
# How an array is written; the lower half of the byte has the bytes that each number needs.
DIFFERENCES = 0x10  # from the same array of the base
_SIGNS = 0x20  # 0, -1, 1, -2 ... as 0, 1, 2, 3 ..., so that small negative numbers are small
_ZEROS = 0x40  # a map of what is not zero comes first
_WHOLE = 0x80  # in one piece, for numbers that repeat: zstd finds them only if their bytes stay together
_LENGTH = struct.Struct("<Q")
_SAMPLE = 1 << 15  # numbers by which ways are compared
_PAYS = 0.9  # zstd takes time: it must save a tenth
_LEVEL = 1  # higher ones save nothing on counts


def write(x: Array, before: Array | None, kind: str) -> tuple[int, list[bytes]]:
    """How an array is written best, judged by its middle, and its sections; `kind` is the first letter of its type."""
    ways = [_SIGNS if kind == "I" else 0]
    if kind == "F":
        ways.append(_WHOLE)
    if before is not None:
        ways.append(DIFFERENCES | _SIGNS)
    if x.nbytes < SHORT:
        ways = [_WHOLE]
    if len(ways) == 1:
        return _write_as(ways[0], x, before)
    start = max(0, (len(x) - _SAMPLE) // 2)
    some = slice(start, start + _SAMPLE)
    tried = [_write_as(way, x[some], None if before is None else before[some]) for way in ways]
    sizes = [sum(map(len, sections)) for _, sections in tried]
    best = sizes.index(min(sizes))
    return tried[best] if len(x) <= _SAMPLE else _write_as(ways[best], x, before)


def _write_as(way: int, x: Array, before: Array | None) -> tuple[int, list[bytes]]:
    if way & _WHOLE:
        return way | x.itemsize, section(x.tobytes())
    if way & DIFFERENCES and before is not None:
        x = x - before  # modulo the numbers' width, so that nothing is lost
    if way & _SIGNS:
        signed = x.view(f"<i{x.itemsize}")
        if way & DIFFERENCES or signed.min(initial=0) < 0:
            x = ((signed << 1) ^ (signed >> (8 * x.itemsize - 1))).view(x.dtype)
        else:
            way &= ~_SIGNS
    sections: list[bytes] = []
    filled = x != 0
    if 2 * np.count_nonzero(filled) < len(x):
        way |= _ZEROS
        sections += section(np.packbits(filled).tobytes())
        x = x[filled]
    width = (int(x.max(initial=0)).bit_length() + 7) // 8
    planes = x.view(np.uint8).reshape(-1, x.itemsize)
    for plane in range(width):
        sections += section(planes[:, plane].tobytes())
    return way | width, sections


def section(raw: bytes) -> list[bytes]:
    """A length and as many bytes: zstd's if they are fewer than the section has, else its own."""
    middle = len(raw) // 2
    sample = raw[middle : middle + _SAMPLE // 2]
    squeezer = zstandard.ZstdCompressor(level=_LEVEL)
    pays = len(raw) > _LENGTH.size and len(squeezer.compress(sample)) < _PAYS * len(sample)
    squeezed = squeezer.compress(raw) if pays else raw
    best = squeezed if len(squeezed) < len(raw) else raw
    return [_LENGTH.pack(len(best)), best]


class Reader:
    """Packed bytes, read from the front; `ValueError` or `ZstdError` where they are none."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = memoryview(data)
        self._at = start

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        self._at += size
        if self._at > len(self._data):
            raise ValueError("it is cut short")
        return self._data[self._at - size : self._at]

    def section(self, size: int) -> bytes | memoryview:
        """The next section, which must have so many bytes: no memory is taken for any other number."""
        stored = self.take(_LENGTH.unpack(self.take(_LENGTH.size))[0])
        if len(stored) == size:
            return stored
        if len(stored) > size or zstandard.frame_content_size(stored) != size:
            raise ValueError("a section has another size")
        return zstandard.ZstdDecompressor().decompress(stored, max_output_size=size, allow_extra_data=False)


def read(reader: Reader, out: Array, before: Array | None) -> None:
    """Fill an array with what `write` wrote."""
    way = reader.take(1)[0]
    if way & _WHOLE:
        out.view(np.uint8)[:] = np.frombuffer(reader.section(out.nbytes), np.uint8)
        return
    width, count, places = way & 0xF, len(out), None
    if width > out.itemsize or (way & DIFFERENCES and before is None):
        raise ValueError("an array that cannot be")
    if way & _ZEROS:
        bits = np.frombuffer(reader.section(-(-count // 8)), np.uint8)
        places = np.flatnonzero(np.unpackbits(bits, count=count))
        count = len(places)
    x = np.zeros(count, out.dtype)
    planes = x.view(np.uint8).reshape(-1, x.itemsize)
    for plane in range(width):
        planes[:, plane] = np.frombuffer(reader.section(count), np.uint8)
    if way & _SIGNS:
        x = (x >> 1) ^ (0 - (x & 1))
    if before is not None and way & DIFFERENCES:
        out[:] = before
    else:
        out[:] = 0
    if places is None:
        out += x
    else:
        out[places] += x
