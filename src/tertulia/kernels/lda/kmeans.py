"""Spherical k-means (Dhillon and Modha, Machine Learning 2001) and its seeds; threads synchronise inside one kernel.

Documents are rows of length 1, weighted by their tokens. A step finds the nearest centre of every document, then
recomputes centres from the sums of their documents' rows. A cluster that loses all its documents keeps its centre.
Threads take pieces of the documents, of the words and of the clusters from a queue; no sum depends on the thread.

Seeds are documents that are unlike each other and that many others resemble. Of some candidates, drawn with
probabilities that fall with the similarity to the seeds so far, the one is chosen that more tokens' documents resemble
(cf. k-means++, Arthur and Vassilvitskii, SODA 2007). Unweighted, a few long and odd documents would find no cluster of
their own. All candidates of a seed are compared in one pass over the documents.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import barrier_wait, fetch_add
from tertulia.kernels.core.jit import inner_kernel, kernel, lean_kernel
from tertulia.kernels.core.rng import bits, uniform
from tertulia.kernels.core.scalars import larger, smaller
from tertulia.kernels.core.simd import add, sum_rows
from tertulia.kernels.core.vectors import LANES, padded_width

_PIECES = 64  # of the documents, at any number of threads
_PARTS = 16  # of the words
_LABEL, _CLEAR, _ADD, _SQUARE, _SCALE, _MULTIPLY = range(6)  # phases; a barrier precedes each
_STEP = (_LABEL, _CLEAR, _ADD, _SQUARE, _SCALE)
_NO_SEEDS, _NO_PRODUCTS = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)


class Rows(NamedTuple):
    """Documents as sparse rows of length 1."""

    starts: I64  # [documents+1]
    words: I32
    values: F32
    sizes: F32  # [documents] tokens: the weight of a document, as in the likelihood


def pieces(rows: Rows) -> I64:
    """Return the edges of pieces of the documents, with about as many words each."""
    return np.array([0] + [last for _, last in parallel.cuts(rows.starts, _PIECES)])


def find_centres(rows: Rows, V: int, seeds: I64, steps: int, threads: int) -> tuple[F32, I32]:
    """Find the centres [V, padded K] after `steps` steps from these documents [K], and each document's nearest."""
    centres = np.zeros((V, padded_width(len(seeds))), dtype=np.float32)
    labels = np.empty(len(rows.starts) - 1, dtype=np.int32)
    _run_phases((*(_STEP * steps), _LABEL), rows, len(seeds), centres, labels, threads, seeds)
    return centres, labels


def nearest(rows: Rows, K: int, centres: F32, threads: int) -> I32:
    """Find the nearest of K centres of each row."""
    labels = np.empty(len(rows.starts) - 1, dtype=np.int32)
    _run_phases((_LABEL,), rows, K, centres, labels, threads)
    return labels


def likeness(rows: Rows, V: int, K: int, labels: I32, threads: int) -> tuple[F64, F64]:
    """Compute the products of the clusters' sums of rows, [K, K], and their tokens [K]."""
    sums, products = (np.zeros((n, padded_width(K)), dtype=np.float32) for n in (V, K))
    _run_phases((_ADD, _MULTIPLY), rows, K, sums, labels, threads, products=products)
    sizes: F64 = np.bincount(labels, rows.sizes, K).astype(np.float64)
    return products[:, :K].astype(np.float64), sizes


def _run_phases(
    phases: tuple[int, ...], rows: Rows, K: int, centres: F32, labels: I32, threads: int, seeds: I64 = _NO_SEEDS,
    products: F32 = _NO_PRODUCTS,
) -> None:  # fmt: skip
    threads, width = parallel.threads_allowed(threads), centres.shape[1]
    what, taken = np.array(phases), np.zeros(len(phases), dtype=np.int64)
    given = (threads, rows, K, centres, seeds, labels, pieces(rows), what, taken, np.zeros((_PARTS, width)), products)
    room = [tuple(np.empty(width, dtype=np.float32) for _ in range(2)) for _ in range(threads)]
    parallel.run_with_barrier(run_phases, [(thread, *given, *room[thread]) for thread in range(threads)])


# numba compiles an inlined function once per call: hence phases, with one call of each function.
@lean_kernel
def run_phases(
    barrier: I64, thread: int, threads: int, rows: Rows, K: int, centres: F32, seeds: I64, labels: I32, pieces: I64,
    phases: I64, taken: I64, squares: F64, products: F32, score: F32, scale: F32,
) -> None:  # fmt: skip
    """Do one thread's part of all phases; `taken` counts the pieces that threads have taken in each."""
    for k in range(thread, seeds.shape[0], threads):
        for j in range(rows.starts[seeds[k]], rows.starts[seeds[k] + 1]):
            centres[rows.words[j], k] = rows.values[j]
    for phase in range(phases.shape[0]):
        if not barrier_wait(barrier, threads):
            return
        what = phases[phase]
        if what == _LABEL:
            label_pieces(rows, K, centres, labels, pieces, taken, phase, score)
        elif what == _ADD:
            add_rows(rows, labels, K, centres, taken, phase)
        elif what == _MULTIPLY:
            multiply(centres, products, taken, phase)
        else:
            pass_over(centres, labels, squares, scale, taken, phase, what)


@inner_kernel
def pass_over(x: F32, labels: I32, squares: F64, scale: F32, taken: I64, phase: int, what: int) -> None:
    """Take parts of the rows of x: clear columns that have documents, add up squares, or give columns length 1."""
    for k in range(scale.shape[0]):
        whole = 0.0
        for part in range(_PARTS):
            whole += squares[part, k]
        scale[k] = 1.0 / larger(np.sqrt(whole), 1e-12) if what == _SCALE else 1.0
    if what == _CLEAR:
        for d in range(labels.shape[0]):
            scale[labels[d]] = 0.0
    while True:
        part = fetch_add(taken, phase, 1)
        if part >= _PARTS:
            return
        first, last = x.shape[0] * part // _PARTS, x.shape[0] * (part + 1) // _PARTS
        if what == _SQUARE:
            for k in range(x.shape[1]):
                squares[part, k] = 0.0
            for w in range(first, last):
                for k in range(x.shape[1]):
                    squares[part, k] += np.float64(x[w, k]) * np.float64(x[w, k])
        else:
            for w in range(first, last):
                for k in range(x.shape[1]):
                    x[w, k] *= scale[k]


@inner_kernel
def label_pieces(
    rows: Rows, K: int, centres: F32, labels: I32, pieces: I64, taken: I64, phase: int, score: F32
) -> None:  # fmt: skip
    """Find the nearest of K centres, piece by piece, until all are taken; `score` is room for one number each."""
    while True:
        piece = fetch_add(taken, phase, 1)
        if piece >= pieces.shape[0] - 1:
            return
        for d in range(pieces[piece], pieces[piece + 1]):
            for k in range(score.shape[0]):
                score[k] = 0.0
            for j in range(rows.starts[d], rows.starts[d + 1]):
                add(score, rows.values[j], centres, np.int64(rows.words[j]))
            best = 0
            for k in range(1, K):
                if score[k] > score[best]:
                    best = k
            labels[d] = best


@inner_kernel
def add_rows(rows: Rows, labels: I32, K: int, sums: F32, taken: I64, phase: int) -> None:
    """Add documents' rows to the columns of their clusters: columns side by side, until all are taken."""
    while True:
        first = LANES * fetch_add(taken, phase, 1)
        if first >= K:
            return
        for d in range(labels.shape[0]):
            if first <= labels[d] < first + LANES:
                for j in range(rows.starts[d], rows.starts[d + 1]):
                    sums[rows.words[j], labels[d]] += rows.sizes[d] * rows.values[j]


@inner_kernel
def multiply(sums: F32, products: F32, taken: I64, phase: int) -> None:
    """Add up the products of columns, side by side; a library's sums would depend on its threads."""
    while True:
        first = LANES * fetch_add(taken, phase, 1)
        if first >= products.shape[0]:
            return
        for w in range(sums.shape[0]):
            for a in range(first, smaller(first + LANES, products.shape[0])):
                if sums[w, a] != 0.0:  # most are 0 for most words
                    add(products[a], sums[w, a], sums, w)


CANDIDATES = 8  # for a seed; they fit into one register
_SEEDED = 4_000  # seeds up to which they are chosen with care: the cost is their number times the documents
_POWER = 6  # of the distance to the nearest seed, by which candidates are drawn


class _Search(NamedTuple):
    """The arrays that threads share while they look for seeds."""

    edges: I64  # [pieces+1] documents
    best: F32  # [documents] likeness to the nearest seed
    likeness: F32  # [documents, LANES] likeness to the nearest seed or the candidate
    mass: F64  # [pieces] by which a piece is drawn from
    gains: F64  # [pieces, LANES] of each candidate
    chosen: I64  # [K]
    taken: I64  # [K] pieces that were compared with the candidates of a seed
    owner: I64  # [pieces] the thread that compared it last, in whose cache it is


def seeds(rows: Rows, V: int, K: int, key: np.uint64, threads: int = 1) -> I64:
    """Choose K documents as seeds; the same document twice where there are too few."""
    D, threads = len(rows.starts) - 1, parallel.threads_allowed(threads)
    if K > _SEEDED or K >= D:
        return np.argsort(hashes(key, max(D, 1)), kind="stable")[np.arange(K) % max(D, 1)]
    edges = pieces(rows)
    n = len(edges) - 1
    room = np.zeros(D, dtype=np.float32), np.zeros((D, LANES), dtype=np.float32), np.zeros(n), np.zeros((n, LANES))
    search = _Search(edges, *room, *(np.zeros(m, dtype=np.int64) for m in (K, K, n)))
    jobs = [(thread, threads, rows, search, key, np.zeros((V, LANES), dtype=np.float32),
             np.zeros(CANDIDATES, dtype=np.int64), np.empty(LANES, dtype=np.float32))
            for thread in range(threads)]  # fmt: skip
    parallel.run_with_barrier(search_seeds, jobs)
    return search.chosen


@kernel
def hashes(key: np.uint64, n: int) -> NDArray[np.uint64]:
    """Hash 0..n-1, to sort by for a random order."""
    found = np.empty(n, dtype=np.uint64)
    for i in range(n):
        found[i] = bits(key, np.uint64(i))
    return found


@lean_kernel
def search_seeds(
    barrier: I64, thread: int, threads: int, rows: Rows, search: _Search, key: np.uint64, table: F32, candidates: I64,
    score: F32,
) -> None:  # fmt: skip
    """Do one thread's part of the search; each thread draws the same candidates instead of waiting for them."""
    edges, best, likeness, mass, gains, chosen, taken, owner = search
    for p in range(thread, mass.shape[0], threads):
        mass[p] = weigh(rows.sizes, best, edges[p], edges[p + 1])
    for k in range(chosen.shape[0]):
        if not barrier_wait(barrier, threads):
            return
        draw_candidates(rows, search, key, k, table, candidates)
        while True:
            p = fetch_add(taken, k, 1)
            if p >= mass.shape[0]:
                break
            owner[p] = thread
            compare(rows, search, p, table, score)
        if not barrier_wait(barrier, threads):
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
    """Sum the mass of documents first..last-1: the less they resemble seeds, the more."""
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
    """Compare a piece's documents with the candidates, and sum the gains."""
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
    """Find the candidate that gains most."""
    better, most = 0, -1.0
    for c in range(CANDIDATES):
        gain = 0.0
        for p in range(gains.shape[0]):
            gain += gains[p, c]
        if gain > most:
            better, most = c, gain
    return better
