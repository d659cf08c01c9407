"""Expected counts of topics in words, in little memory: all topics of common words, the strongest ones of rare words.

Words come by frequency. The first have a row of all topics each, as many rows as a cache holds, and a list of their
strongest topics; a topic can only enter a list when the word gains mass in it, so that lists cost little to keep. All
other words have FEW slots; a topic takes over the weakest when its mass is larger, and what was there is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits
from tertulia.kernels.core.vectors import LANES, padded_width

FEW = LANES  # topics of a document, and of a rare word
_LISTED = 8  # topics in the list of a common word
_CELLS = 2**20  # of common words x topics: 4 MB


class Mass(NamedTuple):
    """Mass of topics in words, up to a factor; c common words and r rare ones."""

    whole: F32  # [c + r] sums over topics
    cells: F32  # [c, padded K]
    listed: I32  # [c, listed] the strongest topics of common words
    least: F32  # [c] the least mass among those, or less
    topics: I32  # [r, slots]
    slots: F32  # [r, slots]


class Scratch(NamedTuple):
    """Room to work in, a number per topic; the first two are negative between calls."""

    gain: F32
    place: I32
    met: I32


@kernel
def scratch(K: int) -> Scratch:
    """Room for topics 0..K-1."""
    return Scratch(np.full(K, -1.0, dtype=np.float32), np.full(K, -1, dtype=np.int32), np.empty(K, dtype=np.int32))


def initial_mass(tokens: I64, K: int, key: np.uint64) -> tuple[Mass, F64]:
    """The tokens [V] of words, spread evenly over a few topics each, drawn at random; sums over words [padded K]."""
    common = min(len(tokens), _CELLS // padded_width(K))
    rare, listed, slots = (
        len(tokens) - common,
        min(_LISTED, -(-K // 2)),
        min(FEW, -(-K // 2)),
    )  # not all: alike, topics would never separate
    mass = Mass(
        whole=tokens.astype(np.float32),
        cells=np.zeros((common, padded_width(K)), dtype=np.float32),
        listed=np.empty((common, listed), dtype=np.int32),
        least=(tokens[:common] / listed).astype(np.float32),
        topics=np.empty((rare, slots), dtype=np.int32),
        slots=np.repeat((tokens[common:, None] / slots).astype(np.float32), slots, axis=1),
    )
    sums = np.zeros(padded_width(K))
    _sow(K, key, mass, sums)
    return mass, sums


@kernel
def _sow(K: int, key: np.uint64, mass: Mass, sums: F64) -> None:
    common = mass.cells.shape[0]
    for w in range(len(mass.whole)):
        n = mass.listed.shape[1] if w < common else mass.topics.shape[1]
        for m in range(n):  # one topic from each of n ranges: none comes twice
            low, high = m * K // n, (m + 1) * K // n
            k = low + np.int64(bits(key, np.uint64(w * FEW + m)) % np.uint64(high - low))
            if w < common:
                mass.listed[w, m], mass.cells[w, k] = k, mass.least[w]
            else:
                mass.topics[w - common, m] = k
            sums[k] += mass.whole[w] / n


@kernel
def choose(
    words: I32, counts: F32, first: int, last: int, mass: Mass, inverse: F32, work: Scratch, mine: I32, value: F32
) -> int:
    """The topics `mine` [FEW] of most `value` in words first..last-1; return how many there are, -1 and 0 beyond.

    The value of topic k is sum_i count_i mass_wk / (C_k whole_w), over the words that have k in their list or slots.
    """
    whole, cells, listed, _, topics, slots = mass
    gain, _, met = work
    common, n = np.uintp(cells.shape[0]), np.uintp(0)
    for i in range(first, last):
        w = np.uintp(words[i])
        pull = counts[i] / whole[w]
        size = listed.shape[1] if w < common else topics.shape[1]
        for m in range(np.uintp(size)):
            k = np.uintp(listed[w, m] if w < common else topics[w - common, m])
            if gain[k] < 0.0:
                gain[k] = 0.0
                met[n] = k
                n += np.uintp(1)
            gain[k] += pull * inverse[k] * (cells[w, k] if w < common else slots[w - common, m])
    mine[:], value[:], weakest = -1, 0.0, 0
    for j in range(n):
        k = np.uintp(met[j])
        if j < FEW or gain[k] > value[weakest]:
            at = np.int64(j) if j < FEW else weakest
            mine[at], value[at] = k, gain[k]
            weakest = 0
            for s in range(1, FEW):
                weakest = s if value[s] < value[weakest] else weakest
        gain[k] = -1.0
    return min(int(n), FEW)


@kernel
def gather(
    words: I32,
    first: int,
    last: int,
    mass: Mass,
    base: np.float32,
    inverse: F32,
    work: Scratch,
    mine: I32,
    rows: F32,
    at: int,
) -> None:
    """Phi of words first..last-1 in the topics `mine`, (mass + base) inverse, in rows [:, FEW] from `at` on."""
    _, cells, _, _, topics, slots = mass
    place, common = work.place, np.uintp(cells.shape[0])
    size = np.uintp(topics.shape[1])
    scale = np.zeros(FEW, dtype=np.float32)
    n = np.uintp(0)
    while n < FEW and mine[n] >= 0:
        place[mine[n]] = n
        scale[n] = inverse[mine[n]]
        n += np.uintp(1)
    for i in range(first, last):
        w, row = np.uintp(words[i]), np.uintp(at + i - first)
        if w < common:
            for s in range(n):
                rows[row, s] = (cells[w, np.uintp(mine[s])] + base) * scale[s]
            for s in range(n, np.uintp(FEW)):
                rows[row, s] = 0.0
        else:
            for s in range(np.uintp(FEW)):
                rows[row, s] = base * scale[s]
            for m in range(size):
                s = place[np.uintp(topics[w - common, m])]
                if s >= 0:
                    rows[row, np.uintp(s)] += slots[w - common, m] * scale[np.uintp(s)]
    for s in range(n):
        place[mine[s]] = -1


@kernel
def grow_common(
    w: np.uintp, pairs: I32, owner: I32, mass: Mass, weight: np.float32, chosen: I32, shares: F32, sums: F32
) -> None:
    """Add the shares of a common word's pairs; of a pair's topics, the one of the largest share may enter the list."""
    whole, cells, listed, least, _, _ = mass
    for i in pairs:
        d, best = np.uintp(owner[i]), 0
        for s in range(FEW):
            if chosen[d, s] < 0:
                break
            k, more = np.uintp(chosen[d, s]), weight * shares[i, s]
            cells[w, k] += more
            sums[k] += more
            whole[w] += more
            best = s if shares[i, s] > shares[i, best] else best
        k = np.uintp(chosen[d, best])
        if cells[w, k] > least[w]:
            known, weakest = False, 0
            for m in range(listed.shape[1]):
                known |= listed[w, m] == np.int32(k)
                if cells[w, np.uintp(listed[w, m])] < cells[w, np.uintp(listed[w, weakest])]:
                    weakest = m
            least[w] = cells[w, np.uintp(listed[w, weakest])]
            if not known and cells[w, k] > least[w]:
                listed[w, weakest] = k


@kernel
def grow_rare(
    w: np.uintp,
    pairs: I32,
    owner: I32,
    mass: Mass,
    weight: np.float32,
    chosen: I32,
    shares: F32,
    sums: F32,
    place: I32,
) -> None:
    """Add the shares of a rare word's pairs to their slots; the largest that has none may take over the weakest."""
    whole, cells, _, _, topics, slots = mass
    r = w - np.uintp(cells.shape[0])
    for i in pairs:
        d, n = np.uintp(owner[i]), 0
        while n < FEW and chosen[d, n] >= 0:
            place[chosen[d, n]] = n
            n += 1
        weakest = 0
        for m in range(topics.shape[1]):
            k = np.uintp(topics[r, m])
            if place[k] >= 0:
                more = weight * shares[np.uintp(i), np.uintp(place[k])]
                slots[r, m] += more
                sums[k] += more
                whole[w] += more
                place[k] = -1
            weakest = m if slots[r, m] < slots[r, weakest] else weakest
        best = -1
        for s in range(n):
            if place[chosen[d, s]] >= 0 and (best < 0 or shares[i, s] > shares[i, best]):
                best = s
            place[chosen[d, s]] = -1
        if best >= 0 and weight * shares[i, best] > slots[r, weakest]:
            k, more = np.uintp(chosen[d, best]), weight * shares[i, best]
            sums[topics[r, weakest]] -= slots[r, weakest]
            sums[k] += more
            whole[w] += more - slots[r, weakest]
            topics[r, weakest], slots[r, weakest] = k, more
