"""Log likelihoods of units (8, 15), looked up ahead of time and topic by topic.

A report of a thousand entries reaches into a thousand places of log phi, and the rows of many topics do not fit into a
core's cache. But the proposals of a block of units can be drawn before any is accepted: their likelihoods are added up
in the order of topics, while a topic's row stays close (twice as fast at V = 20,000 and K = 50). Whatever was not
foreseen is added up when asked for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia.arrays import F32, F64, I32
from tertulia.kernels.compiled import kernel
from tertulia.kernels.private_gibbs import Entries, Units

_MANY = 32  # entries below which sorting costs more than it saves


class Block(NamedTuple):
    """Units that are sampled together.

    Each has 2 + its number of words places: its topic, what its document proposes, and what each word proposes.
    """

    units: Units
    first: int  # of the units
    last: int
    entries: Entries
    log_phi: F32  # [K, V]
    topic: I32  # [places]
    known: F64  # [places] the log likelihood of the unit in that topic, NaN if not known


@kernel
def block_of(units: Units, first: int, last: int, entries: Entries, log_phi: F32) -> Block:
    """Units first..last-1, nothing proposed yet."""
    places = 2 * (last - first) + units.tokens[last] - units.tokens[first]
    topic, known = np.zeros(places, dtype=np.int32), np.full(places, np.nan)
    return Block(units, first, last, entries, log_phi, topic, known)


@kernel
def place(block: Block, u: int) -> int:
    """The first place of unit u."""
    at: int = 2 * (u - block.first) + block.units.tokens[u] - block.units.tokens[block.first]
    return at


@kernel
def look_ahead(block: Block) -> None:
    """Add up the likelihoods that the proposals will ask for, topic by topic (a counting sort)."""
    starts = np.zeros(block.log_phi.shape[0] + 1, dtype=np.int64)
    unit_of = np.full(block.topic.shape[0], -1, dtype=np.int64)  # of the places worth a look
    for u in range(block.first, block.last):
        first, last = place(block, u), place(block, u + 1)
        if _worth_it(block, u, first, last):
            for at in range(first, last):
                if _find(block, u, block.topic[at]) == at:
                    unit_of[at] = u
                    starts[block.topic[at] + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(starts[-1], dtype=np.int64)
    for at in range(unit_of.shape[0]):
        if unit_of[at] >= 0:
            order[starts[block.topic[at]]] = at
            starts[block.topic[at]] += 1
    for at in order:
        block.known[at] = _added_up(block, unit_of[at], block.topic[at])


@kernel
def _worth_it(block: Block, u: int, first: int, last: int) -> bool:
    """Whether another topic is proposed, and the entries are many, yet fewer bytes than a row of log phi."""
    entries = _entry(block, u + 1) - _entry(block, u)
    if entries < _MANY or 2 * entries > block.log_phi.shape[1]:
        return False
    others = 0
    for at in range(first + 1, last):
        others += block.topic[at] != block.topic[first]
    return others > 0


@kernel
def log_likelihood(block: Block, u: int, k: int) -> float:
    """That of the whole unit u in topic k, which must stand in one of its places."""
    at = _find(block, u, k)
    if math.isnan(block.known[at]):
        block.known[at] = _added_up(block, u, k)
    total: float = block.known[at]
    return total


@kernel
def _find(block: Block, u: int, k: int) -> int:
    at = place(block, u)
    while block.topic[at] != k:
        at += 1
    return at


@kernel
def _entry(block: Block, u: int) -> int:
    """The first entry of unit u."""
    at: int = block.entries.indptr[block.units.tokens[u] - block.entries.first]
    return at


@kernel
def _added_up(block: Block, u: int, k: int) -> float:
    """The sum of value * log_phi[k, idx] over a unit's entries, in four strands that need not wait for each other."""
    idx, value, row = block.entries.idx, block.entries.value, block.log_phi[k]
    a = b = c = d = 0.0
    e, last = np.uintp(_entry(block, u)), np.uintp(_entry(block, u + 1))  # unsigned: no check for negative indices
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    while e + four <= last:
        a += np.float64(value[e]) * row[np.uintp(idx[e])]
        b += np.float64(value[e + one]) * row[np.uintp(idx[e + one])]
        c += np.float64(value[e + two]) * row[np.uintp(idx[e + two])]
        d += np.float64(value[e + three]) * row[np.uintp(idx[e + three])]
        e += four
    while e < last:
        a += np.float64(value[e]) * row[np.uintp(idx[e])]
        e += one
    return (a + b) + (c + d)
