"""Seeds of clusters: documents that are unlike each other, and that many others resemble.

Of some candidates, drawn by how little documents resemble the seeds so far, the one is chosen that more tokens'
documents resemble (cf. k-means++, Arthur and Vassilvitskii, SODA 2007). Documents count by their tokens: else a few
that are long and strange would find no cluster of their own. All candidates of a seed are compared in one pass over the
documents, in pieces that do not depend on the number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F32, F64, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add, meet
from tertulia.kernels.core.jit import inner_kernel, kernel, lean_kernel
from tertulia.kernels.core.rng import bits, uniform
from tertulia.kernels.core.scalars import larger
from tertulia.kernels.core.simd import sum_rows
from tertulia.kernels.core.vectors import LANES
from tertulia.kernels.lda.kmeans import Rows, pieces

CANDIDATES = 8  # for a seed; they fit into one register
_SEEDED = 4_000  # seeds up to which they are chosen with care: the cost is their number times the documents
_POWER = 6  # of the distance to the nearest seed, by which candidates are drawn


class _Search(NamedTuple):
    """What threads share while they look for seeds."""

    edges: I64  # [pieces+1] documents
    best: F32  # [documents] likeness to the nearest seed
    likeness: F32  # [documents, LANES] and to the nearest seed or candidate
    mass: F64  # [pieces] by which a piece is drawn from
    gains: F64  # [pieces, LANES] of each candidate
    chosen: I64  # [K]
    taken: I64  # [K] pieces that were compared with the candidates of a seed
    owner: I64  # [pieces] the thread that compared it last, in whose cache it is


def seeds(rows: Rows, V: int, K: int, key: np.uint64, threads: int = 1) -> I64:
    """Documents [K] to begin with; the same one twice where there are too few."""
    D, threads = len(rows.starts) - 1, parallel.alone_or(threads)
    if K > _SEEDED or K >= D:
        return np.argsort(hashes(key, max(D, 1)), kind="stable")[np.arange(K) % max(D, 1)]
    edges = pieces(rows)
    n = len(edges) - 1
    room = np.zeros(D, dtype=np.float32), np.zeros((D, LANES), dtype=np.float32), np.zeros(n), np.zeros((n, LANES))
    search = _Search(edges, *room, *(np.zeros(m, dtype=np.int64) for m in (K, K, n)))
    jobs = [(thread, threads, rows, search, key, np.zeros((V, LANES), dtype=np.float32),
             np.zeros(CANDIDATES, dtype=np.int64), np.empty(LANES, dtype=np.float32))
            for thread in range(threads)]  # fmt: skip
    parallel.run_meeting(search_seeds, jobs)
    return search.chosen


@kernel
def hashes(key: np.uint64, n: int) -> NDArray[np.uint64]:
    """Numbers [n] to sort by, for a random order."""
    found = np.empty(n, dtype=np.uint64)
    for i in range(n):
        found[i] = bits(key, np.uint64(i))
    return found


@lean_kernel
def search_seeds(
    gate: I64, thread: int, threads: int, rows: Rows, search: _Search, key: np.uint64, table: F32, candidates: I64,
    score: F32,
) -> None:  # fmt: skip
    """One thread's part: pieces as it has time; each draws the same candidates, rather than to wait."""
    edges, best, likeness, mass, gains, chosen, taken, owner = search
    for p in range(thread, mass.shape[0], threads):
        mass[p] = weigh(rows.sizes, best, edges[p], edges[p + 1])
    for k in range(chosen.shape[0]):
        if not meet(gate, threads):
            return
        draw_candidates(rows, search, key, k, table, candidates)
        while True:
            p = fetch_add(taken, k, 1)
            if p >= mass.shape[0]:
                break
            owner[p] = thread
            compare(rows, search, p, table, score)
        if not meet(gate, threads):
            return
        better = find_better(gains)
        chosen[k] = candidates[better]
        for p in range(mass.shape[0]):
            if owner[p] == thread:
                for d in range(edges[p], edges[p + 1]):
                    best[d] = likeness[d, better]
                mass[p] = weigh(rows.sizes, best, edges[p], edges[p + 1])


@inner_kernel
def weigh(sizes: F32, best: F32, first: int, last: int) -> float:
    """The mass of documents first..last-1: the less they resemble seeds, the more."""
    total = 0.0
    for d in range(first, last):
        total += sizes[d] * larger(1.0 - best[d], 1e-6) ** _POWER
    return total


@inner_kernel
def draw_candidates(rows: Rows, search: _Search, key: np.uint64, k: int, table: F32, candidates: I64) -> None:
    """Draw the candidates of seed k, and write their rows into the table [V, LANES] instead of those before."""
    edges, best, mass = search.edges, search.best, search.mass
    whole = 0.0
    for p in range(mass.shape[0]):
        whole += mass[p]
    for c in range(CANDIDATES):
        if k > 0:
            for j in range(rows.starts[candidates[c]], rows.starts[candidates[c] + 1]):
                table[rows.words[j], c] = 0.0
        goal, p = whole * uniform(key, np.uint64(CANDIDATES * k + c)), 0
        while p < mass.shape[0] - 1 and goal >= mass[p]:
            goal -= mass[p]
            p += 1
        d = edges[p]
        while d < edges[p + 1] - 1:
            goal -= rows.sizes[d] * larger(1.0 - best[d], 1e-6) ** _POWER
            if goal < 0.0:
                break
            d += 1
        candidates[c] = d
    for c in range(CANDIDATES):
        for j in range(rows.starts[candidates[c]], rows.starts[candidates[c] + 1]):
            table[rows.words[j], c] = rows.values[j]


@inner_kernel
def compare(rows: Rows, search: _Search, p: int, table: F32, score: F32) -> None:
    """How a piece's documents resemble the candidates, and what that gains."""
    edges, best, likeness, gains = search.edges, search.best, search.likeness, search.gains
    for c in range(LANES):
        gains[p, c] = 0.0
    for d in range(edges[p], edges[p + 1]):
        sum_rows(rows.values, rows.words, rows.starts[d], rows.starts[d + 1], table, score)
        for c in range(CANDIDATES):
            likeness[d, c] = larger(score[c], best[d])
            gains[p, c] += rows.sizes[d] * likeness[d, c]


@inner_kernel
def find_better(gains: F64) -> int:
    """The candidate that gains most."""
    better, most = 0, -1.0
    for c in range(CANDIDATES):
        gain = 0.0
        for p in range(gains.shape[0]):
            gain += gains[p, c]
        if gain > most:
            better, most = c, gain
    return better
