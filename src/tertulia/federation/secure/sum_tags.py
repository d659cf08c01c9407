"""Tags of sums: by them members see that the numbers in a question are true totals of what they have sent.

A tag is a linear hash under a key that all members have and the server does not: h(x) = sum of r_j x_j modulo a prime,
with secret random r (Carter and Wegman, "Universal classes of hash functions", 1979). Tags of the parts add up to the
tag of the total. The server learns that tag by the same masked sum as the total, and must show it with the total. Of
any other numbers it can guess the tag with probability 2^-61 for each question, unless they are a combination of
totals with the same key. A member that gives the server the key gives it this power, too.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.federation.secure.masks import SEED_BYTES, random_bytes

CELLS = 2  # hashes of 31 bits each
_PRIME = (1 << 31) - 1
_MOST = 1 << 30  # of a number whose tag is checked: two numbers of at most half the prime do not have one remainder
_CHUNK = 1 << 20  # sums of this number of products' remainders fit 64 bits, and their memory stays small


def tag_of(key: bytes, arrays: tuple[Array, ...]) -> I64:
    """Return the tag [CELLS] of whole numbers, which are hashed one array after the other."""
    total, place = np.zeros(CELLS, np.int64), 0
    factors = _factors(key, sum(array.size for array in arrays))
    for array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1)
        for start in range(0, len(flat), _CHUNK):
            part = flat[start : start + _CHUNK]
            used = np.flatnonzero(part)
            rest = part[used].astype(np.int64) % _PRIME
            for cell in range(CELLS):
                total[cell] += (rest * factors[cell, place + start + used].astype(np.int64) % _PRIME).sum()
        place += len(flat)
    return total % _PRIME


def is_tag_of(tag: Array, key: bytes, arrays: tuple[Array, ...]) -> bool:
    """Tell whether a tag, or a sum of tags, is that of whole numbers. Numbers that wrap modulo the prime have none."""
    if any(int(np.abs(array).max(initial=0)) > _MOST for array in arrays):
        return False
    return tag.shape == (CELLS,) and bool(((tag.astype(np.int64) - tag_of(key, arrays)) % _PRIME == 0).all())


@lru_cache(maxsize=4)
def _factors(key: bytes, size: int) -> Array:
    """Return the secret factors [CELLS, size], of 31 bits; members in one process share them."""
    drawn = random_bytes(key[:SEED_BYTES], 4 * CELLS * size).view("<u4").reshape(CELLS, size)
    factors: Array = drawn >> np.uint32(1)
    factors.flags.writeable = False
    return factors
