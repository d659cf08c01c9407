"""Random numbers that belong to documents: a pure function of a document's key, a salt, and a place.

The bits are splitmix64's (Steele, Lea and Flood 2014), started from a mix of key and salt.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia.arrays import U64, Array
from tertulia.kernels.compiled import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S12, _S16, _S27, _S30, _S31 = (np.uint64(n) for n in (12, 16, 27, 30, 31))
_LOW = np.uint64(0xFFFF)


@kernel
def _mixed(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> _S30)) * _MIX1
    x = (x ^ (x >> _S27)) * _MIX2
    return x ^ (x >> _S31)


@kernel
def _bits(start: np.uint64, place: int) -> np.uint64:
    return _mixed(start + np.uint64(place + 1) * _GOLDEN)


@kernel
def bits(keys: U64, salt: np.uint64) -> U64:
    """The first 64 bits of each document, [B]."""
    out = np.empty_like(keys)
    for d in range(keys.shape[0]):
        out[d] = _bits(_mixed(keys[d] ^ salt), 0)
    return out


@kernel
def normals(keys: U64, salt: np.uint64, out: Array) -> None:
    """Standard normals [B, n], by Box and Muller."""
    n = out.shape[1]
    half = (n + 1) // 2
    for d in range(keys.shape[0]):
        start = _mixed(keys[d] ^ salt)
        for i in range(half):
            radius = math.sqrt(-2.0 * math.log(((_bits(start, i) >> _S12) + 0.5) * 2.0**-52))
            angle = (2.0 * math.pi) * (((_bits(start, half + i) >> _S12) + 0.5) * 2.0**-52)
            out[d, i] = radius * math.cos(angle)
            if half + i < n:
                out[d, half + i] = radius * math.sin(angle)


@kernel
def mask(keys: U64, salt: np.uint64, dropped: int, kept: float, out: Array) -> None:
    """A mask [B, n] that is 0 where 16 bits are less than `dropped`, else `kept`."""
    for d in range(keys.shape[0]):
        start, word = _mixed(keys[d] ^ salt), np.uint64(0)
        for i in range(out.shape[1]):
            word = _bits(start, i // 4) if i % 4 == 0 else word >> _S16
            out[d, i] = kept if np.int64(word & _LOW) >= dropped else 0.0
