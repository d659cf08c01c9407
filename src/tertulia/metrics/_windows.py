"""The compiled half of `coherence`: counts of virtual documents that hold a word, or both words of a pair.

A virtual document is a whole document or one position of a sliding window over it (Röder, Both and Hinneburg 2015,
"Exploring the Space of Topic Coherence Measures"). Every counted word has a row of bits, one per virtual document;
two words meet in popcount(row & row) of them. Rows are filled block by block, so that they stay in the cache for a
corpus of any length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import I32, I64, U64
from tertulia.kernels.core.jit import kernel

U32 = NDArray[np.uint32]
BLOCK = 1 << 13  # virtual documents in a block: 1 kB of bits per word


@kernel
def count(
    words: I32, documents: I64, slot_of: U32, n_slots: int, pairs: I32, window: int, block: int = BLOCK
) -> tuple[int, I64, I64]:
    """Count virtual documents in all, per slot and per pair of slots.

    `slot_of` maps a word to its slot, or to `n_slots` where it is not counted. A document no longer than the window,
    even an empty one, is one virtual document: a window as long as the longest document counts whole documents.
    """
    lengths = documents[1:] - documents[:-1]
    n_windows = np.maximum(lengths - window + 1, 1)
    capacity = min(max(block, n_windows.max()), n_windows.sum())
    lines = ((capacity + 511) >> 9) | 1  # an odd number of cache lines per row, else all rows would compete for one
    bits = np.zeros((n_slots, lines << 3), np.uint64)  # [S, capacity / 64 and a little]
    hits = np.empty(lengths.max() + 1, np.uint32)
    per_slot = np.zeros(n_slots, np.int64)
    per_pair = np.zeros(len(pairs), np.int64)
    filled = 0
    for d in range(len(lengths)):
        if filled + n_windows[d] > capacity:
            _tally(bits, filled, pairs, per_slot, per_pair)
            filled = 0
        tokens = words[documents[d] : documents[d + 1]]
        if n_windows[d] == 1:
            _mark_whole(tokens, slot_of, n_slots, hits, bits, filled)
        else:
            _mark_windows(tokens, slot_of, n_slots, window, bits, filled)
        filled += n_windows[d]
    _tally(bits, filled, pairs, per_slot, per_pair)
    return n_windows.sum(), per_slot, per_pair


@kernel
def _mark_whole(tokens: I32, slot_of: U32, n_slots: int, hits: U32, bits: U64, place: int) -> None:
    """Set the bit at `place` for the counted tokens; all slots are written and hits kept, to avoid a branch."""
    n = np.uint64(0)
    for i in range(len(tokens)):
        slot = slot_of[np.uint32(tokens[i])]  # unsigned indices are not checked for wrap-around
        hits[n] = slot
        n += np.uint64(slot < np.uint32(n_slots))
    bit, column = np.uint64(1) << np.uint64(place & 63), np.uint64(place >> 6)
    for i in range(n):
        bits[hits[i], column] |= bit


@kernel
def _mark_windows(tokens: I32, slot_of: U32, n_slots: int, window: int, bits: U64, place: int) -> None:
    """Set the bits of all windows that hold a counted token: they begin at most window - 1 tokens before it."""
    for i in range(len(tokens)):
        slot = slot_of[np.uint32(tokens[i])]
        if slot < n_slots:
            _set(bits[slot], place + max(i - window + 1, 0), place + min(i, len(tokens) - window))


@kernel
def _set(row: U64, first: int, last: int) -> None:
    """Set the bits first..last of a row."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    head = ones << np.uint64(first & 63)
    tail = ones >> np.uint64(63 - (last & 63))
    a, b = first >> 6, last >> 6
    if a == b:
        row[a] |= head & tail
        return
    row[a] |= head
    row[a + 1 : b] = ones
    row[b] |= tail


@kernel
def _tally(bits: U64, filled: int, pairs: I32, per_slot: I64, per_pair: I64) -> None:
    """Add a block's counts and clear its bits."""
    n = (filled + 63) >> 6
    for s in range(len(bits)):
        per_slot[s] += _ones_in_both(bits[s, :n], bits[s, :n])
    for p in range(len(pairs)):
        per_pair[p] += _ones_in_both(bits[pairs[p, 0], :n], bits[pairs[p, 1], :n])
    bits[:, :n] = 0


@kernel
def _ones_in_both(a: U64, b: U64) -> int:
    """Compute popcount(a & b) by sums of neighbouring bits, pairs and nibbles, which the compiler vectorises."""
    total = np.uint64(0)
    for i in range(len(a)):
        x = a[i] & b[i]
        x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return int(total)
