"""Log likelihoods of units (8, 15), computed ahead of time and topic by topic.

A report of a thousand entries reaches into a thousand places of log phi, and the rows of many topics do not fit into a
core's cache. But the proposals of a block of units can be drawn before any is accepted: their likelihoods are added up
in the order of topics, while a topic's row stays close (1.5 to 2 times as fast at V = 20,000 and K = 50). Other
likelihoods are added up when they are needed.

Every unit has 2 + its number of words *places*: its topic, what its document proposes, and what each word proposes.
Arrays are taken out of their tuples once per block: numba counts references at every other use, 2 µs per token.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.ftm_paper.gibbs import Entries, Units

_MANY = 32  # entries below which sorting costs more than it saves


@kernel
def look_ahead(units: Units, first: int, last: int, entries: Entries, log_phi: F32, topic: I32, known: F64) -> None:
    """Fill in what the places' topics [places] will be asked for by units first..last-1, NaN elsewhere."""
    tokens, indptr, idx, value = units.tokens, entries.indptr, entries.idx, entries.value
    known[:] = np.nan
    unit_of = np.full(topic.shape[0], -1, dtype=np.int64)  # of the places worth a look
    at = 0
    for u in range(first, last):
        end = at + 2 + tokens[u + 1] - tokens[u]
        n = indptr[tokens[u + 1] - entries.first] - indptr[tokens[u] - entries.first]
        if _MANY <= n <= log_phi.shape[1] // 2:  # as long as a report is fewer bytes than a row of log phi
            _mark(topic, at, end, u, unit_of)
        at = end
    for j in _by_topic(topic, unit_of, log_phi.shape[0]):
        start, stop = tokens[unit_of[j]] - entries.first, tokens[unit_of[j] + 1] - entries.first
        known[j] = sum_entries(idx, value, indptr[start], indptr[stop], log_phi, topic[j])


@kernel
def find(topic: I32, at: int, k: int) -> int:
    """Find the first place with topic k, from place `at` on; there must be one."""
    while topic[np.uintp(at)] != k:
        at += 1
    return at


@kernel
def sum_entries(idx: I32, value: F32, first: int, last: int, log_phi: F32, k: int) -> float:
    """Sum value * log_phi[k, idx] over entries, in four independent chains of additions."""
    a = b = c = d = 0.0
    e, end, row = np.uintp(first), np.uintp(last), np.uintp(k)  # unsigned: no check for negative indices
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    while e + four <= end:
        a += value[e] * log_phi[row, np.uintp(idx[e])]
        b += value[e + one] * log_phi[row, np.uintp(idx[e + one])]
        c += value[e + two] * log_phi[row, np.uintp(idx[e + two])]
        d += value[e + three] * log_phi[row, np.uintp(idx[e + three])]
        e += four
    while e < end:
        a += value[e] * log_phi[row, np.uintp(idx[e])]
        e += one
    return (a + b) + (c + d)


@kernel
def _mark(topic: I32, at: int, end: int, u: int, unit_of: I64) -> None:
    """Note unit u at the first place of each of its topics, if it has more than one."""
    others = 0
    for j in range(at, end):
        others += topic[j] != topic[at]
    for j in range(at, end if others else at):
        if find(topic, at, topic[j]) == j:
            unit_of[j] = u


@kernel
def _by_topic(topic: I32, unit_of: I64, K: int) -> I64:
    """Return the marked places in the order of their topics, by a counting sort."""
    starts = np.zeros(K + 1, dtype=np.int64)
    for j in range(topic.shape[0]):
        if unit_of[j] >= 0:
            starts[topic[j] + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(starts[K], dtype=np.int64)
    for j in range(topic.shape[0]):
        if unit_of[j] >= 0:
            order[starts[topic[j]]] = j
            starts[topic[j]] += 1
    return order
