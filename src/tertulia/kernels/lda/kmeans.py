"""Spherical k-means (Dhillon and Modha, Machine Learning 2001), by threads that meet inside one kernel.

Documents are rows of length 1, and count by their tokens. A step finds the nearest centre of every document, and makes
centres anew from the sums of their documents' rows. A cluster that loses all its documents keeps its centre. Threads
take pieces of the documents, of the words, and of the clusters as they have time; no sum depends on who made it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add, meet
from tertulia.kernels.core.jit import inner_kernel, lean_kernel
from tertulia.kernels.core.scalars import larger, smaller
from tertulia.kernels.core.simd import add
from tertulia.kernels.core.vectors import LANES, padded_width

_PIECES = 64  # of the documents, whatever the threads
_PARTS = 16  # of the words
_LABEL, _CLEAR, _ADD, _SQUARE, _SCALE, _MULTIPLY = range(6)  # turns; threads meet before each
_STEP = (_LABEL, _CLEAR, _ADD, _SQUARE, _SCALE)
_NO_SEEDS, _NO_PRODUCTS = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)


class Rows(NamedTuple):
    """Documents as sparse rows of length 1."""

    starts: I64  # [documents+1]
    words: I32
    values: F32
    sizes: F32  # [documents] tokens: by so much each counts, as it does in the likelihood


def pieces(rows: Rows) -> I64:
    """Where pieces of the documents begin and end, of about as many words each."""
    return np.array([0] + [last for _, last in parallel.cuts(rows.starts, _PIECES)])


def find_centres(rows: Rows, V: int, seeds: I64, steps: int, threads: int) -> tuple[F32, I32]:
    """The centres [V, padded K] after so many steps from these documents [K], and each document's nearest."""
    centres = np.zeros((V, padded_width(len(seeds))), dtype=np.float32)
    labels = np.empty(len(rows.starts) - 1, dtype=np.int32)
    _take_turns((*(_STEP * steps), _LABEL), rows, len(seeds), centres, labels, threads, seeds)
    return centres, labels


def nearest(rows: Rows, K: int, centres: F32, threads: int) -> I32:
    """The nearest of K centres of each row."""
    labels = np.empty(len(rows.starts) - 1, dtype=np.int32)
    _take_turns((_LABEL,), rows, K, centres, labels, threads)
    return labels


def likeness(rows: Rows, V: int, K: int, labels: I32, threads: int) -> tuple[F64, F64]:
    """The products of the clusters' sums of rows, [K, K], and their tokens [K]."""
    sums, products = (np.zeros((n, padded_width(K)), dtype=np.float32) for n in (V, K))
    _take_turns((_ADD, _MULTIPLY), rows, K, sums, labels, threads, products=products)
    sizes: F64 = np.bincount(labels, rows.sizes, K).astype(np.float64)
    return products[:, :K].astype(np.float64), sizes


def _take_turns(
    turns: tuple[int, ...], rows: Rows, K: int, centres: F32, labels: I32, threads: int, seeds: I64 = _NO_SEEDS,
    products: F32 = _NO_PRODUCTS,
) -> None:  # fmt: skip
    threads, width = parallel.alone_or(threads), centres.shape[1]
    what, taken = np.array(turns), np.zeros(len(turns), dtype=np.int64)
    given = (threads, rows, K, centres, seeds, labels, pieces(rows), what, taken, np.zeros((_PARTS, width)), products)
    room = [tuple(np.empty(width, dtype=np.float32) for _ in range(2)) for _ in range(threads)]
    parallel.run_meeting(take_turns, [(thread, *given, *room[thread]) for thread in range(threads)])


# Whatever is called at several places is compiled as often: hence turns, and one call of each.
@lean_kernel
def take_turns(
    gate: I64, thread: int, threads: int, rows: Rows, K: int, centres: F32, seeds: I64, labels: I32, pieces: I64,
    turns: I64, taken: I64, squares: F64, products: F32, score: F32, scale: F32,
) -> None:  # fmt: skip
    """One thread's part of all turns; `taken` counts what threads have taken in each."""
    for k in range(thread, seeds.shape[0], threads):
        for j in range(rows.starts[seeds[k]], rows.starts[seeds[k] + 1]):
            centres[rows.words[j], k] = rows.values[j]
    for turn in range(turns.shape[0]):
        if not meet(gate, threads):
            return
        what = turns[turn]
        if what == _LABEL:
            label_pieces(rows, K, centres, labels, pieces, taken, turn, score)
        elif what == _ADD:
            add_rows(rows, labels, K, centres, taken, turn)
        elif what == _MULTIPLY:
            multiply(centres, products, taken, turn)
        else:
            pass_over(centres, labels, squares, scale, taken, turn, what)


@inner_kernel
def pass_over(x: F32, labels: I32, squares: F64, scale: F32, taken: I64, turn: int, what: int) -> None:
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
        part = fetch_add(taken, turn, 1)
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
    rows: Rows, K: int, centres: F32, labels: I32, pieces: I64, taken: I64, turn: int, score: F32
) -> None:  # fmt: skip
    """Find the nearest of K centres, piece by piece, until all are taken; `score` is room for one number each."""
    while True:
        piece = fetch_add(taken, turn, 1)
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
def add_rows(rows: Rows, labels: I32, K: int, sums: F32, taken: I64, turn: int) -> None:
    """Add documents' rows to the columns of their clusters: columns side by side, until all are taken."""
    while True:
        first = LANES * fetch_add(taken, turn, 1)
        if first >= K:
            return
        for d in range(labels.shape[0]):
            if first <= labels[d] < first + LANES:
                for j in range(rows.starts[d], rows.starts[d + 1]):
                    sums[rows.words[j], labels[d]] += rows.sizes[d] * rows.values[j]


@inner_kernel
def multiply(sums: F32, products: F32, taken: I64, turn: int) -> None:
    """Add up the products of columns, side by side; a library's sums would depend on its threads."""
    while True:
        first = LANES * fetch_add(taken, turn, 1)
        if first >= products.shape[0]:
            return
        for w in range(sums.shape[0]):
            for a in range(first, smaller(first + LANES, products.shape[0])):
                if sums[w, a] != 0.0:  # most are 0 for most words
                    add(products[a], sums[w, a], sums, w)
