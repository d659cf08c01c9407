"""Masks: pseudorandom numbers that two members share, added by one and subtracted by the other.

A seed of 16 bytes is the key of a stream of AES-128-CTR, whose bytes are read as integers of the rings, array by array.
Addition modulo 2^width is that of unsigned integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tertulia._arrays import Array

SEED_BYTES = 16
_CHUNK = 1 << 17  # bytes: a piece of an array and one of a stream stay in the second-level cache
_ZEROS = memoryview(bytes(_CHUNK))


def add_masks(arrays: Sequence[Array], signed: Iterable[tuple[bytes, int]]) -> None:
    """Add the masks of seeds with sign 1, and subtract those with sign -1, in place.

    Arrays are flat, of unsigned integers. All masks of a piece are added before the next piece: to read and write the
    arrays once for each mask would take twice as long with fifty members.
    """
    streams = [(_stream(seed), sign) for seed, sign in signed]
    buffer = np.empty(_CHUNK, np.uint8)
    for array in arrays:
        step = _CHUNK // array.itemsize
        for start in range(0, len(array), step):
            part = array[start : start + step]
            zeros, mask = _ZEROS[: part.nbytes], buffer[: part.nbytes].view(array.dtype)
            for stream, sign in streams:
                stream.update_into(zeros, buffer.data)
                if sign > 0:
                    part += mask
                else:
                    part -= mask


def _stream(seed: bytes) -> Any:
    return Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()  # a seed makes one stream only


def random_bytes(seed: bytes, size: int) -> Array:
    """Return the first bytes of a seed's stream."""
    found = np.zeros(size, np.uint8)
    add_masks([found], [(seed, 1)])
    return found


def sign_of(own: int, other: int) -> int:
    """Return the sign with which a member adds the mask that it shares with another: the other has the opposite."""
    return 1 if own < other else -1
