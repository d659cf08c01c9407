"""Bags of words times a dense table, and the gradient: work for the words of a batch, never for all of them."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.kernels.core.jit import kernel, loose_kernel
from tertulia.kernels.core.simd import fetch_row

_AHEAD = 4  # rows that are on their way to the cache


@kernel
def select(words: I64, counts: Array, offsets: I64, chosen: I64) -> tuple[I64, Array, I64]:
    """Select the words, counts and offsets of the chosen documents."""
    B = len(chosen)
    starts = np.zeros(B + 1, np.int64)
    for b in range(B):
        starts[b + 1] = starts[b] + offsets[chosen[b] + 1] - offsets[chosen[b]]
    some, times = np.empty(starts[B], words.dtype), np.empty(starts[B], counts.dtype)
    for b in range(B):
        first = offsets[chosen[b]]
        for i in range(starts[b], starts[b + 1]):
            some[i], times[i] = words[first + i - starts[b]], counts[first + i - starts[b]]
    return some, times, starts


@kernel
def tokens(counts: Array, offsets: I64) -> Array:
    """Sum each document's counts, [B]."""
    sums = np.zeros(len(offsets) - 1, counts.dtype)
    for d in range(len(sums)):
        for i in range(offsets[d], offsets[d + 1]):
            sums[d] += counts[i]
    return sums


@kernel
def by_word(words: I64, counts: Array, offsets: I64, V: int) -> tuple[I64, I64, I64, Array]:
    """Index documents by their words: those that occur [U], where the entries of each start [U + 1], and the entries.

    An entry is a document and a count. Document d holds words[i], counts[i] times, for i from offsets[d] on.
    """
    tally = np.zeros(V + 1, np.int64)
    for word in words:
        tally[word] += 1
    present, starts = np.empty(V, np.int64), np.empty(V + 1, np.int64)
    U, start = 0, 0
    for v in range(V):
        if tally[v]:
            present[U], starts[U] = v, start
            start, tally[v] = start + tally[v], start  # from here on: where the word's next entry goes
            U += 1
    starts[U] = start
    holders, ordered = np.empty(len(words), np.int64), np.empty_like(counts)
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            at = tally[words[i]]
            holders[at], ordered[at] = d, counts[i]
            tally[words[i]] += 1
    return present[:U].copy(), starts[: U + 1].copy(), holders, ordered


@loose_kernel
def times(words: I64, counts: Array, offsets: I64, table: Array) -> Array:
    """Sum count times row over each document's words, [B, H]."""
    B, H = len(offsets) - 1, table.shape[1]
    out = np.zeros((B, H), table.dtype)
    for d in range(B):
        for i in range(offsets[d], offsets[d + 1]):
            word, count = words[i], counts[i]
            if i + _AHEAD < len(words):
                fetch_row(table, words[i + _AHEAD])
            for h in range(H):
                out[d, h] += count * table[word, h]
    return out


@loose_kernel
def times_slopes(starts: I64, holders: I64, counts: Array, slopes: Array) -> Array:
    """Compute slopes by the rows of the words that occur, [U, H], from slopes [B, H] by the product."""
    U, H = len(starts) - 1, slopes.shape[1]
    out = np.zeros((U, H), slopes.dtype)
    for i in range(U):
        for j in range(starts[i], starts[i + 1]):
            d, count = holders[j], counts[j]
            for h in range(H):
                out[i, h] += count * slopes[d, h]
    return out
