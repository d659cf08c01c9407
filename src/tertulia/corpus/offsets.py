"""Functions on offsets: gather, drop and cut stretches of a flat token array.

Offsets are n + 1 rising positions: stretch i is `tokens[offsets[i]:offsets[i + 1]]`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tertulia._arrays import I32, I64, Array
from tertulia.errors import InputError

UnitKind = Literal["ngram", "sentence", "paragraph"]


def ranges(starts: I64, lengths: I64) -> I64:
    """List the positions `start .. start + length - 1` of all stretches, one after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total, dtype=np.int64)


def offsets_of(lengths: Array) -> I64:
    """Convert lengths to offsets."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def narrow(offsets: Array) -> I32 | I64:
    """Store offsets in 4 bytes if they fit (fewer than 2**31 tokens), else in 8."""
    return offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets.astype(np.int64)


def drop_empty(offsets: Array) -> Array:
    """Keep the stretches that hold at least one token."""
    return offsets[np.concatenate(([True], np.diff(offsets) > 0))]


def chunks(offsets: Array, n: int) -> I64:
    """Cut every stretch into pieces of n tokens, the last one possibly shorter: start and end of each, [U, 2]."""
    if n < 1:
        raise InputError(f"n-grams need n of at least 1, not {n}")
    lengths = np.diff(offsets).astype(np.int64)
    pieces = -(-lengths // n)  # rounded up
    stretch = np.repeat(np.arange(len(lengths)), pieces)
    within = ranges(np.zeros(len(lengths), np.int64), pieces)  # 0, 1, .. in each stretch
    starts = offsets[:-1].astype(np.int64)[stretch] + n * within
    ends = np.minimum(starts + n, offsets[1:].astype(np.int64)[stretch])
    return np.stack((starts, ends), axis=1)
