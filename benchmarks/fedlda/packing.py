"""A user's tuples (w, k1, k2) as a few bytes: sorted by word, gaps and topics in Rice's code, bit after bit.

The order of tuples says nothing, so it need not be sent: words go as gaps. User and server know the broadcast phi, so
a topic goes as its rank among the topics of its word, likeliest first. Rice's code (1979) writes the quotient by 2^p in
unary and the remainder in p bits; p is chosen for each message. Dummies are what is missing from l.

    tuples | how k1 is sent (2 bits) | p of k1 | p of k2 | then for each tuple: gap, [k1 there?], [k1], k2
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I32, I64, U8, Array
from tertulia.errors import FormatError
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.fedlda.sampling import I16

_EACH, _NONE, _SOME = 0, 1, 2  # every tuple has a k1, none has, each says so
_WIDTH = 4  # bits of a Rice parameter


def ranks(phi: Array) -> tuple[I16, I16]:
    """Sort topics by likelihood for each word, from phi [V, K]: topic at each rank, rank of each topic, [V, K]."""
    topic_at = np.argsort(-np.asarray(phi), axis=1, kind="stable").astype(np.int16)
    rank = np.empty_like(topic_at)
    np.put_along_axis(rank, topic_at.astype(np.int64), np.arange(topic_at.shape[1], dtype=np.int16)[None], axis=1)
    return topic_at, rank


def pack(word: Array, origin: Array, target: Array, rank: I16, sampled: int) -> bytes:
    """Pack one user's message: `sampled` tuples at most, over words and topics of `rank` [V, K]; origin -1 is none."""
    tuples = (freeze(word, np.int32), freeze(origin, np.int16), freeze(target, np.int16))
    buffer = np.zeros(_room(len(word), rank), dtype=np.uint8)
    order = np.empty(len(word), dtype=np.int64)
    bits = _pack(*tuples, 0, len(word), rank, sampled, order, buffer)
    return buffer[: (bits + 7) // 8].tobytes()


def unpack(data: bytes, topic_at: I16, sampled: int) -> tuple[I32, I16, I16]:
    """Return the tuples of a message, sorted by word."""
    word, origin, target = (
        np.empty(sampled, dtype=np.int32),
        np.empty(sampled, dtype=np.int16),
        np.empty(sampled, dtype=np.int16),
    )
    n = _unpack(np.frombuffer(data, dtype=np.uint8), topic_at, sampled, word, origin, target)
    if n < 0:
        raise FormatError(f"these {len(data)} bytes are no user's tuples: they are cut off, or of another model")
    return word[:n], origin[:n], target[:n]


def packed_bytes(user: Array, word: Array, origin: Array, target: Array, rank: I16, sampled: int, users: int) -> int:
    """Count the bytes of all messages of `users` who answer: those without a tuple send a header too."""
    tuples = (freeze(user, np.int32), freeze(word, np.int32), freeze(origin, np.int16), freeze(target, np.int16))
    sent, speaking = _pack_all(*tuples, rank, sampled, _room(sampled, rank))
    silent = (_bit_length(sampled) + 2 + 2 * _WIDTH + 7) // 8
    return int(sent + (users - speaking) * silent)


def _room(n: int, rank: I16) -> int:
    """Bound the bytes that n tuples need: unary parts are short for the parameters that are chosen."""
    return int(16 + n * 16 + (rank.shape[0] + 2 * rank.shape[1] * n) // 8)


@kernel
def _pack_all(user: I32, word: I32, origin: I16, target: I16, rank: I16, sampled: int, room: int) -> tuple[int, int]:
    buffer, order = np.zeros(room, dtype=np.uint8), np.empty(sampled, dtype=np.int64)
    total, speaking, start = 0, 0, 0
    for stop in range(1, user.shape[0] + 1):
        if stop == user.shape[0] or user[stop] != user[start]:
            size = (_pack(word, origin, target, start, stop, rank, sampled, order, buffer) + 7) // 8
            buffer[:size] = 0
            total += size
            speaking += 1
            start = stop
    return total, speaking


@kernel
def _pack(
    word: I32, origin: I16, target: I16, start: int, stop: int, rank: I16, sampled: int, order: I64, buffer: U8
) -> int:
    """Write tuples start..stop-1 into an empty buffer; return the bits."""
    n, V = stop - start, rank.shape[0]
    without, sum_origin, sum_target = 0, 0, 0
    for j in range(n):  # insertion sort: there are few
        place = j
        while place > 0 and word[order[place - 1]] > word[start + j]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = start + j
        sum_target += rank[word[start + j], target[start + j]]
        if origin[start + j] < 0:
            without += 1
        else:
            sum_origin += rank[word[start + j], origin[start + j]]
    how = _EACH if without == 0 else (_NONE if without == n else _SOME)
    p_origin, p_target = _parameter(sum_origin, n - without), _parameter(sum_target, n)
    at = _put(buffer, 0, n, _bit_length(sampled))
    at = _put(buffer, at, how, 2)
    at = _put(buffer, at, p_origin, _WIDTH)
    at = _put(buffer, at, p_target, _WIDTH)
    p_gap, before = _parameter(V, n), 0
    for j in range(n):
        i = order[j]
        at = _put_rice(buffer, at, word[i] - before, p_gap)
        before = word[i]
        if how == _SOME:
            at = _put(buffer, at, int(origin[i] >= 0), 1)
        if origin[i] >= 0:
            at = _put_rice(buffer, at, rank[word[i], origin[i]], p_origin)
        at = _put_rice(buffer, at, rank[word[i], target[i]], p_target)
    return at


@kernel
def _unpack(data: U8, topic_at: I16, sampled: int, word: I32, origin: I16, target: I16) -> int:
    """Read a message; return the number of tuples, -1 if it is none."""
    V, K = topic_at.shape
    n, at = _take(data, 0, _bit_length(sampled))
    how, at = _take(data, at, 2)
    p_origin, at = _take(data, at, _WIDTH)
    p_target, at = _take(data, at, _WIDTH)
    p_gap, w = _parameter(V, n), 0
    if n > sampled:
        return -1
    for j in range(n):
        gap, at = _take_rice(data, at, p_gap)
        w += gap
        there, k1 = how == _EACH, 0
        if how == _SOME:
            bit, at = _take(data, at, 1)
            there = bit == 1
        if there:
            k1, at = _take_rice(data, at, p_origin)
        k2, at = _take_rice(data, at, p_target)
        if at > 8 * data.shape[0] or w >= V or max(k1, k2) >= K:
            return -1
        word[j], target[j] = w, topic_at[w, k2]
        origin[j] = topic_at[w, k1] if there else -1
    return n


@kernel
def _parameter(total: int, n: int) -> int:
    """Choose Rice's parameter for n numbers of this sum: 2^p is about ln 2 times the mean."""
    p = 0
    while n > 0 and p < 2**_WIDTH - 1 and (2 << p) * n * 100 <= total * 69 + n * 50:
        p += 1
    return p


@kernel
def _bit_length(x: int) -> int:
    n = 0
    while x >> n:
        n += 1
    return n


@kernel
def _put(buffer: U8, at: int, value: int, bits: int) -> int:
    for b in range(bits - 1, -1, -1):
        buffer[at >> 3] |= np.uint8(((value >> b) & 1) << (7 - (at & 7)))
        at += 1
    return at


@kernel
def _put_rice(buffer: U8, at: int, value: int, p: int) -> int:
    for _ in range(value >> p):
        buffer[at >> 3] |= np.uint8(1 << (7 - (at & 7)))
        at += 1
    return _put(buffer, at + 1, value & ((1 << p) - 1), p)


@kernel
def _take(data: U8, at: int, bits: int) -> tuple[int, int]:
    """Return the next bits as a number, and where the rest begins; zeros beyond the end."""
    value = 0
    for _ in range(bits):
        bit = (data[at >> 3] >> (7 - (at & 7))) & 1 if at >> 3 < data.shape[0] else 0
        value = value << 1 | int(bit)
        at += 1
    return value, at


@kernel
def _take_rice(data: U8, at: int, p: int) -> tuple[int, int]:
    high = 0
    while True:
        bit, at = _take(data, at, 1)
        if bit == 0:
            break
        high += 1
    low, at = _take(data, at, p)
    return high << p | low, at
