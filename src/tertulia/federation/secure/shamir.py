"""Shamir's secret sharing over GF(256), byte by byte (Shamir, CACM 22, 1979).

A secret is the value at 0 of a polynomial of degree t - 1 whose other coefficients are random. Member i holds the value
at i + 1. Any t values give the secret; fewer give nothing. Many secrets are shared at once, as rows of an array.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertulia._arrays import U8

_POLYNOMIAL = 0x11B  # of AES


def _multiply_slowly(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = (a << 1) ^ (_POLYNOMIAL if a & 0x80 else 0)
        b >>= 1
    return product


_TIMES: U8 = np.array([[_multiply_slowly(a, b) for b in range(256)] for a in range(256)], np.uint8)
_INVERSE: U8 = np.array([0, *(int(np.flatnonzero(_TIMES[a] == 1)[0]) for a in range(1, 256))], np.uint8)


def share(secrets: U8, random: U8, members: int) -> U8:
    """Share secrets [n, b] among members [m, n, b]; `random` [t - 1, n, b] are the other coefficients."""
    if not 1 <= members <= 255:
        raise ValueError(f"{members} members: from 1 to 255 can share a secret")
    shares = np.broadcast_to(secrets.reshape(-1), (members, secrets.size)).copy()
    points = np.arange(1, members + 1, dtype=np.uint8)
    power = np.ones(members, np.uint8)
    for coefficients in random:  # row by row: the whole product would need t times the memory
        power = _TIMES[power, points]
        shares ^= np.take(_TIMES[power], coefficients.reshape(-1), axis=1)
    return shares.reshape(members, *secrets.shape)


def share_of(secrets: U8, random: U8, member: int) -> U8:
    """Return one member's shares [n, b], as `share` gives them to all."""
    found, power = secrets.copy(), 1
    for coefficients in random:
        power = int(_TIMES[power, member + 1])
        found ^= _TIMES[power][coefficients]
    return found


def recover(shares: U8, members: Sequence[int], at: int = -1) -> U8:
    """Interpolate shares [t, n, b] of these members: the secrets [n, b], or the shares of member `at`."""
    point = at + 1
    found = np.zeros(shares.shape[1:], np.uint8)
    for one, member in zip(shares, members, strict=True):
        found ^= _TIMES[_weight(member, members, point)][one]
    return found


def _weight(member: int, members: Sequence[int], point: int) -> int:
    """Return Lagrange's coefficient; in GF(256) both sum and difference are XOR."""
    weight = 1
    for other in members:
        if other != member:
            ratio = _TIMES[point ^ (other + 1), _INVERSE[(member + 1) ^ (other + 1)]]
            weight = int(_TIMES[weight, ratio])
    return weight
