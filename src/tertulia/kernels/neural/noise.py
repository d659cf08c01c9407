"""Random numbers that belong to documents: a pure function of a document's key, a salt, and a place.

A document's stream starts from a mix of its key and the salt.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import U64, Array
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, mix

_S12, _S16 = np.uint64(12), np.uint64(16)
_LOW = np.uint64(0xFFFF)


@kernel
def first_bits(keys: U64, salt: np.uint64) -> U64:
    """Draw the first 64 bits of each document, [B]."""
    out = np.empty_like(keys)
    for d in range(keys.shape[0]):
        out[d] = bits(mix(keys[d] ^ salt), np.uint64(0))
    return out


@kernel
def normals(keys: U64, salt: np.uint64, out: Array) -> None:
    """Draw standard normals [B, n], by Box and Muller."""
    n = out.shape[1]
    half = (n + 1) // 2
    for d in range(keys.shape[0]):
        start = mix(keys[d] ^ salt)
        for i in range(half):
            radius = math.sqrt(-2.0 * math.log(((bits(start, np.uint64(i)) >> _S12) + 0.5) * 2.0**-52))
            angle = (2.0 * math.pi) * (((bits(start, np.uint64(half + i)) >> _S12) + 0.5) * 2.0**-52)
            out[d, i] = radius * math.cos(angle)
            if half + i < n:
                out[d, half + i] = radius * math.sin(angle)


@kernel
def mask(keys: U64, salt: np.uint64, dropped: int, kept: float, out: Array) -> None:
    """Draw a mask [B, n] that is 0 where 16 bits are less than `dropped`, else `kept`."""
    for d in range(keys.shape[0]):
        start, word = mix(keys[d] ^ salt), np.uint64(0)
        for i in range(out.shape[1]):
            word = bits(start, np.uint64(i // 4)) if i % 4 == 0 else word >> _S16
            out[d, i] = kept if np.int64(word & _LOW) >= dropped else 0.0
