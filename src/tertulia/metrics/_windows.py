"""How many virtual documents hold a word, and both words of a pair: all that any coherence measure counts.

A virtual document is a whole document or one position of a sliding window over it (Röder, Both and Hinneburg 2015,
"Exploring the Space of Topic Coherence Measures"). Every counted word gets a row of bits, one bit a virtual document;
two words meet in popcount(row & row) of them. Rows are filled block by block, so that they stay in the cache however
long the corpus is.
"""

from __future__ import annotations

import numpy as np

from tertulia.arrays import I32, I64, U64
from tertulia.kernels.compiled import kernel

BLOCK = 1 << 15  # virtual documents a block: 4 kB of bits a word


@kernel
def count(
    words: I32, documents: I64, slot_of: I32, n_slots: int, pairs: I32, window: int, block: int = BLOCK
) -> tuple[int, I64, I64]:
    """Count virtual documents in all, per slot and per pair of slots.

    `slot_of` maps a word to its slot, or to `n_slots` where it is not counted. A document no longer than the window,
    even an empty one, is one virtual document: a window as long as the longest document counts whole documents.
    """
    lengths = documents[1:] - documents[:-1]
    n_windows = np.maximum(lengths - window + 1, 1)
    capacity = min(max(block, n_windows.max()), n_windows.sum())
    bits = np.zeros((n_slots, (capacity + 63) >> 6), np.uint64)  # [S, capacity / 64]
    slots = np.empty(lengths.max() + 1, np.int32)
    places = np.empty(lengths.max() + 1, np.int32)
    per_slot = np.zeros(n_slots, np.int64)
    per_pair = np.zeros(len(pairs), np.int64)
    filled = 0
    for d in range(len(lengths)):
        if filled + n_windows[d] > capacity:
            _tally(bits, filled, pairs, per_slot, per_pair)
            filled = 0
        hits = _find(words[documents[d] : documents[d + 1]], slot_of, n_slots, slots, places)
        for h in range(hits):  # a token lies in the windows that begin at most window - 1 tokens before it
            first = max(places[h] - window + 1, 0)
            last = min(places[h], n_windows[d] - 1)
            _set(bits[slots[h]], filled + first, filled + last)
        filled += n_windows[d]
    _tally(bits, filled, pairs, per_slot, per_pair)
    return n_windows.sum(), per_slot, per_pair


@kernel
def _find(tokens: I32, slot_of: I32, n_slots: int, slots: I32, places: I32) -> int:
    """Note the slots and places of counted tokens: writing every token down, but keeping only hits, spares a branch."""
    hits = np.uint64(0)
    for i in range(len(tokens)):
        slot = slot_of[np.uint32(tokens[i])]  # unsigned indices are not checked for wrap-around
        slots[hits] = slot
        places[hits] = i
        hits += np.uint64(slot < n_slots)
    return int(hits)


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
    """popcount(a & b): sums of neighbouring bits, pairs, nibbles; the compiler makes vector code of it."""
    total = np.uint64(0)
    for i in range(len(a)):
        x = a[i] & b[i]
        x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
        x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += (x * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return int(total)
