"""Private reports of tokens, regenerated from a secret key: always the same, never stored densely or drawn again.

A report says something about a token's word w through one of three channels:
`laplace` adds Laplace(1/epsilon) noise to the V entries of the word's one-hot vector and keeps those above tau (FTM,
section 3.1.1); `krr` names the word with probability e^epsilon / (e^epsilon + V - 1), else another one; `subset` names
m words. To a sampler each is a sparse likelihood ratio, P(report | z) ∝ r0 + sum_j a_j phi[z, idx_j].

Draws are pure functions of a key and a token's place, and never V per token: above tau there are Binomial(V - 1,
e^(-tau epsilon) / 2) entries of other words, at uniform places, with values tau + an exponential of mean 1/epsilon.
Decisions compare 64 random bits with integers; exponentials are rounded to a grid, the same for the token's own entry
as for all others, so that no low bit of a float tells them apart (Mironov 2012). A report lists its words in ascending
order, so that the order says nothing.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from tertulia._arrays import F32, I32, I64, U64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.vectors import LANES, intrinsic
from tertulia.kernels.reports.chacha import KEY_WORDS, U32, initial_state, one_token, set_key, tokens_by_key
from tertulia.kernels.reports.channel import Channel, Noise, constants

__all__ = ["Channel", "Reports", "reports", "reports_of_documents"]
_KEY_BYTES = 32
_WORDS = 8 * LANES  # 64-bit words in sixteen blocks
_VALUES = 2**31  # the first of a token's blocks that serve for values; those before serve for places
_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


class Reports(NamedTuple):
    """The reports of a block of tokens, as sparse rows: P(report i | z) ∝ r0 + sum_j a[j] phi[z, idx[j]]."""

    indptr: I64  # [tokens + 1]
    idx: I32  # [nnz] words named, ascending within a token
    a: F32  # [nnz] likelihood ratios above the background
    value: F32  # [nnz] Laplace: the noisy entries; else ones
    r0: float


def reports(
    words: Array,
    channel: Channel,
    key: bytes,
    corpus_id: bytes | str,
    first: int = 0,
    last: int | None = None,
    threads: int = 1,
) -> Reports:
    """Regenerate the reports of tokens first..last-1 of a corpus; they depend neither on the block nor on threads.

    `key` is the party's secret of 32 bytes; `corpus_id` must change whenever any token does, for one key and place
    with two words would give the difference away.
    """
    if len(key) != _KEY_BYTES:
        raise InputError(f"a noise key has {_KEY_BYTES} bytes, not {len(key)}")
    part, first, last = _part(words, channel, first, last)
    keys = freeze(np.frombuffer(_derive_key(key, corpus_id, channel), dtype="<u4").reshape(1, KEY_WORDS), np.uint32)
    tokens = _Tokens(part, keys, np.zeros(len(part), dtype=np.int32), np.arange(first, last, dtype=np.int64))
    return _reports(tokens, channel, threads)


def reports_of_documents(
    words: Array,
    documents: Array,
    channel: Channel,
    keys: Array,
    first: int = 0,
    last: int | None = None,
    threads: int = 1,
) -> Reports:
    """Regenerate reports where each document has its own secret key, keys[d] (8 x 32 bits), for this channel alone.

    A token's report depends on its document's key and its place in the document: on no other document.
    """
    documents, keys = np.asarray(documents), freeze(keys, np.uint32)
    if keys.shape != (len(documents) - 1, KEY_WORDS):
        raise InputError(f"keys have shape {keys.shape}: {len(documents) - 1} documents need {KEY_WORDS} numbers each")
    part, first, last = _part(words, channel, first, last)
    token = np.arange(first, last, dtype=np.int64)
    owner = (np.searchsorted(documents, token, side="right") - 1).astype(np.int32)
    return _reports(_Tokens(part, keys, owner, token - documents[owner]), channel, threads)


class _Tokens(NamedTuple):
    """Tokens of a block, and the keys of their noise."""

    words: I32  # [n]
    keys: U32  # [D, 8]
    owner: I32  # [n] the row of its key
    place: I64  # [n] the nonce


def _part(words: Array, channel: Channel, first: int, last: int | None) -> tuple[I32, int, int]:
    """Check and return tokens first..last-1."""
    last = len(words) if last is None else last
    if not 0 <= first <= last <= len(words):
        raise InputError(f"tokens {first}..{last}: the corpus has {len(words)}")
    part = freeze(words[first:last], np.int32)
    if len(part) and not 0 <= part.min() <= part.max() < channel.V:
        raise InputError(f"words run from {part.min()} to {part.max()}, outside the channel's 0..{channel.V - 1}")
    return part, first, last


def _reports(tokens: _Tokens, channel: Channel, threads: int) -> Reports:
    made = _of_one_word if channel.kind != "laplace" and channel.m == 1 else _of_many_words
    return made(tokens, channel, constants(channel), threads)


def _of_one_word(tokens: _Tokens, channel: Channel, noise: Noise, threads: int) -> Reports:
    n, idx = len(tokens.words), np.empty(len(tokens.words), dtype=np.int32)
    ranges = parallel.cuts(np.arange(n + 1), threads)
    jobs = [(_no_key(), *tokens, a, b, noise.thresholds[0], channel.V, idx) for a, b in ranges]
    parallel.run(_report_one, jobs, threads)
    a, ones = np.full(n, noise.ratio[0]), np.ones(n, dtype=np.float32)
    return Reports(np.arange(n + 1), idx, a, ones, channel.background())


def _of_many_words(tokens: _Tokens, channel: Channel, noise: Noise, threads: int) -> Reports:
    n = len(tokens.words)
    others, own = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    _heads(_no_key(), *tokens[1:], noise.thresholds, channel.m, noise.one, noise.lowest, noise.rate, others, own)
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(others + (own >= 0), out=indptr[1:])
    idx = np.empty(indptr[-1], dtype=np.int32)
    a, value = np.empty(indptr[-1], dtype=np.float32), np.empty(indptr[-1], dtype=np.float32)
    shape = (noise.ratio, noise.lowest, noise.rate, noise.origin, noise.grid)
    jobs = [
        (_no_key(), *tokens, start, stop, channel.V, others, own, *shape, indptr, idx, a, value)
        for start, stop in parallel.cuts(indptr, threads)
    ]
    parallel.run(_report_many, jobs, threads)
    return Reports(indptr, idx, a, value, channel.background())


def _no_key() -> U32:
    """Return a state of the cipher in which kernels set keys."""
    return initial_state(bytes(_KEY_BYTES))


def _derive_key(key: bytes, corpus_id: bytes | str, channel: Channel) -> bytes:
    """Derive the ChaCha20 key of one channel on one corpus."""
    prf = hashlib.blake2b(key=key, person=b"tertulia-report", digest_size=_KEY_BYTES)
    name = "|".join(map(str, (channel.kind, float(channel.epsilon), int(channel.V), float(channel.tau))))
    for part in (corpus_id, name):
        data = part.encode() if isinstance(part, str) else part
        prf.update(len(data).to_bytes(8, "little") + data)
    return prf.digest()


@kernel
def _report_one(
    state: U32, words: I32, keys: U32, owner: I32, place: I64, start: int, stop: int, own: np.uint64, V: int, idx: I32
) -> None:
    """Report tokens by k-ary randomised response."""
    out = np.empty(16 * LANES, dtype=np.uint32)
    for group in range(start, stop, LANES):
        tokens_by_key(state, keys, owner, place, 0, group, min(group + LANES, stop), out)
        for lane in range(min(LANES, stop - group)):
            t = group + lane
            idx[t] = words[t]
            if _head(out, lane, 0) >= own:
                j, r = 2, -1
                while r < 0 and j < 16:  # fourteen words: all are rejected with probability (V / 2^32)^14 at most
                    r = _below(np.uint64(out[j * LANES + lane]), V - 1)
                    j += 1
                r = max(r, 0)
                idx[t] = r + (r >= words[t])


@kernel
def _heads(
    state: U32, keys: U32, owner: I32, place: I64, thresholds: U64, m: int, one: int, lowest: int, rate: float,
    others: I32, own: I64,
) -> None:  # fmt: skip
    """Draw how many other words each report names [n], and the grid cell of its own entry [n], -1 if unreported."""
    out = np.empty(16 * LANES, dtype=np.uint32)
    for t in range(others.shape[0]):
        lane = t % LANES
        if lane == 0:
            tokens_by_key(state, keys, owner, place, 0, t, min(t + LANES, others.shape[0]), out)
        if rate > 0.0:
            count = np.searchsorted(thresholds, _head(out, lane, 0), "right")
            others[t] = min(count, thresholds.shape[0] - 1)
            steps = _exponential(_head(out, lane, 1), rate)
            cell = one + steps if _head(out, lane, 2) & _ONE else one - 1 - steps
            own[t] = cell if cell >= lowest else -1
        else:
            own[t] = 0 if _head(out, lane, 0) < thresholds[0] else -1
            others[t] = m - 1 if own[t] == 0 else m


@kernel
def _report_many(
    state: U32, words: I32, keys: U32, owner: I32, place: I64, start: int, stop: int, V: int, others: I32, own: I64,
    ratio: F32, lowest: int, rate: float, origin: float, grid: float, indptr: I64, idx: I32, a: F32, value: F32,
) -> None:  # fmt: skip
    """Fill in the reports of tokens start..stop-1 of a block."""
    out = np.empty(16 * LANES, dtype=np.uint32)
    stream, cells = out.view(np.uint64), np.zeros(V, dtype=np.int64)
    chosen = np.zeros((V + 63) // 64, dtype=np.uint64)  # one bit per word
    for t in range(start, stop):
        w, at, drawn = words[t], indptr[t], 0
        if t == start or owner[t] != owner[t - 1]:
            set_key(state, keys[owner[t]])
        _mark_others(state, out, stream, place[t], w, others[t], V, chosen)
        if own[t] >= 0:
            chosen[w >> 6] |= _ONE << np.uint64(w & 63)
        if rate > 0.0:
            _draw_cells(state, out, stream, place[t], rate, cells[: others[t]])
        for b in range(chosen.shape[0]):
            left = chosen[b]
            chosen[b] = 0
            while left:
                j = 64 * b + _lowest_bit(left)
                left &= left - _ONE
                above = own[t] - lowest if j == w else cells[drawn]
                drawn += j != w
                idx[at] = j
                a[at] = ratio[min(above, ratio.shape[0] - 1)]
                value[at] = origin + (lowest + above) * grid
                at += 1


@kernel
def _mark_others(state: U32, out: U32, stream: U64, token: int, w: int, left: int, V: int, chosen: U64) -> None:
    """Set the bits of `left` words other than w, uniform without replacement."""
    n, block = np.uint64(V - 1), 1
    spoilt = (_ONE << _HALF) % n  # products with a lower half below it are rejected, see _below
    while left > 0:
        one_token(state, block, token, out)
        block += LANES
        for i in range(_WORDS):
            if left == 0:
                break
            for half in (stream[i] & _LOW, stream[i] >> _HALF):
                product = half * n
                j = np.int64(product >> _HALF)
                j += j >= w
                bit = _ONE << np.uint64(j & 63)
                if left > 0 and (product & _LOW) >= spoilt and not chosen[j >> 6] & bit:
                    chosen[j >> 6] |= bit
                    left -= 1


@kernel
def _draw_cells(state: U32, out: U32, stream: U64, token: int, rate: float, cells: I64) -> None:
    """Draw how many cells each noisy entry lies above tau."""
    for start in range(0, cells.shape[0], _WORDS):
        one_token(state, _VALUES + start, token, out)
        for i in range(min(_WORDS, cells.shape[0] - start)):
            cells[start + i] = _exponential(stream[i], rate)


@kernel
def _head(out: U32, lane: int, j: int) -> np.uint64:
    """Return 64-bit word j of a token's block 0."""
    return np.uint64(out[2 * j * LANES + lane]) | np.uint64(out[(2 * j + 1) * LANES + lane]) << _HALF


@kernel
def _below(bits: np.uint64, n: int) -> int:
    """Draw a uniform number of 0..n-1 from 32 bits; -1: these bits are to be rejected (Lemire, ACM TOMACS 29, 2019)."""
    product = bits * np.uint64(n)
    if (product & _LOW) < np.uint64(n) and (product & _LOW) < (_ONE << _HALF) % np.uint64(n):
        return -1
    return int(product >> _HALF)


@kernel
def _exponential(bits: np.uint64, rate: float) -> int:
    """Return the whole part of rate times a standard exponential variable."""
    return int(-math.log((np.float64(bits) + 0.5) * 2.0**-64) * rate)


@intrinsic
def _lowest_bit(typing: Any, bits: Any) -> Any:
    """Return the place of the lowest bit that is set."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.intp(types.uint64), build
