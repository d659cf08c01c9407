"""Compression of phi, so that it fits into a page.

The most frequent value of a topic (the smoothing, or zero) is stored once. Every other entry is stored as the gap to
the previous one and the index of its value among the topic's distinct values: counts have few of these. Values are
float32, so inference in the page follows `transform` step by step. If that is too large, values keep fewer binary
digits, and values far below a word's maximum become zero: `Packed.digits` has the number of digits, and `error_of` the
effect on shares.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, Array

MOST_BYTES = 820_000  # of phi as text; the whole page then stays below a megabyte
_EXACT = 24  # binary digits of a float32
_RUNGS = ((_EXACT, 1e-9), (15, 1e-8), (12, 1e-7), (10, 1e-6), (8, 1e-5), (6, 1e-4))  # digits; least share of a maximum


class Packed(NamedTuple):
    """Packed topics: the text, and the values after unpacking."""

    text: str
    topic_word: F32  # [K, V]
    digits: int

    @property
    def is_exact(self) -> bool:
        """Whether the float32 values are unchanged."""
        return self.digits == _EXACT


def pack(topic_word: Array, most: int = MOST_BYTES) -> Packed:
    """Pack topics [K, V] as exactly as `most` bytes allow; the coarsest form may be larger."""
    for digits, least in _RUNGS:
        kept = _coarsen(topic_word, digits, least)
        text = squeeze(b"".join(_rows(kept)))
        if len(text) <= most:
            break
    return Packed(text, kept, digits)


def squeeze(data: bytes) -> str:
    """Compress bytes with zlib, and encode them as base64."""
    return base64.b64encode(zlib.compress(data, 6)).decode()


def squeeze_json(value: Any) -> str:
    """Compress plain data as JSON; ASCII, so that lone surrogates survive."""
    return squeeze(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())


def _coarsen(topic_word: Array, digits: int, least: float) -> F32:
    """Round to some binary digits; set values below `least` times their word's maximum to zero."""
    phi: F32 = topic_word.astype(np.float32)
    phi = np.where(phi < least * phi.max(axis=0), np.float32(0.0), phi)
    if digits < _EXACT:
        mantissa, exponent = np.frexp(phi)
        phi = np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits).astype(np.float32)
    return phi


def _rows(phi: F32) -> Iterator[bytes]:
    """Yield for each topic: floor, numbers of entries and distinct values, gaps, values, and the index of each entry.

    If nearly all values differ, they are stored in the order of entries, without indices.
    """
    for row in phi:
        values, place, times = np.unique(row, return_inverse=True, return_counts=True)
        commonest = int(times.argmax())
        at = np.flatnonzero(place != commonest)
        gaps, places = _planes(np.diff(at, prepend=-1) - 1), _planes(place[at])
        if 4 * len(values) + len(places) > 4 * len(at):
            values, places, own = row[at], b"", 0
        else:
            own = len(values)
        head = row[place == commonest][:1].astype("<f4").tobytes() + np.array([len(at), own], "<u4").tobytes()
        yield head + gaps + _planes(values.astype("<f4").view("<u4")) + places


def _planes(numbers: Array) -> bytes:
    """Encode the byte width of the largest number, then the lowest byte of all numbers, the next byte of all ..."""
    width = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    planes = [(numbers >> 8 * i & 0xFF).astype(np.uint8).tobytes() for i in range(width)]
    return bytes([width]) + b"".join(planes)


def error_of(packed: Packed, topic_word: Array, alpha: F64) -> float:
    """Return the largest difference of shares from `transform`, on texts drawn from the model."""
    from tertulia.kernels.lda import fold_in

    if packed.is_exact:
        return 0.0
    draw, K = np.random.default_rng(0), len(topic_word)
    lengths = np.array([1, 3, 10, 30, 100] * 20)
    documents = np.concatenate(([0], np.cumsum(lengths)))
    sums = np.cumsum(topic_word, axis=1, dtype=np.float64)
    words: list[int] = []
    for n in lengths:
        topics = draw.choice(K, size=n, p=draw.dirichlet(np.maximum(alpha, 1e-3)))
        words += [int(np.searchsorted(sums[k], draw.random() * sums[k, -1])) for k in topics]
    tokens = np.minimum(np.array(words, np.int32), topic_word.shape[1] - 1)
    shares = [fold_in.settle(tokens, documents, phi, alpha) for phi in (topic_word, packed.topic_word)]
    return float(np.abs(shares[0] - shares[1]).max())
