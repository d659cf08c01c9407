"""Collapsed Gibbs in blocks of documents: the draw of `gibbs`, over the few topics that a document holds.

A token's topic is drawn by `held`. The counts of its document follow each move at once; those of words and topics
stand still within a block of documents, an eighth of the corpus, and the moves of a block are counted when all of it is
drawn: so threads share nothing but whole numbers that add up to the same in any order.

On the way each document says how likely its tokens are given all others, and how many tokens each of its topics has:
`log_likelihood` tells when training has settled, and alpha is learned from the histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, U8
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add
from tertulia.kernels.core.checks import check_assignment, check_documents
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.ladder import ladder
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.simd import dot, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.held import Fixed, draw_document, hold
from tertulia.kernels.lda.priors import COLUMN_OF, COLUMNS

BLOCKS = 8  # of a sweep; with 4 perplexity ends 1 % higher (2,593 abstracts, K = 100), with 64 no lower
MOST_TOKENS = 2**24  # of a word: up to here float32 counts exactly
_SHARES = 32  # of a block for each thread: at its end none waits long for the others
_UNIT = 2.0**20  # logarithms are added up as whole numbers of 1 / _UNIT, in any order


class Counts(NamedTuple):
    """Tokens of word w in topic k, and of topic k; the others' are in them, where there are others."""

    cells: F32  # [V, padded K] whole numbers
    topics: I64  # [K]


class Average(NamedTuple):
    """The counts of several sweeps, added up: a move counts for itself and for all sweeps that are left."""

    cells: I32  # [V * padded K]
    left: int  # sweeps, with this one; 0: nothing is added up


class Pass(NamedTuple):
    """What a sweep has found."""

    changed: int  # topics
    histogram: I64  # [K, COLUMNS] documents by how many tokens a topic has, see `priors`
    log_likelihood: float  # of every token given all others, added up


class _Block(NamedTuple):
    """The documents that are drawn before counts change: in shares, which threads take as they have time."""

    edges: I64  # [shares+1] documents
    moved: I32  # tokens whose topic is new, from the first of the block on: each share's where its tokens are
    before: I32  # the topics that they had
    n_moved: I64  # [shares]
    taken: I64  # [1] shares so far


NO_AVERAGE = Average(np.zeros(0, dtype=np.int32), 0)


def count(words: I32, z: I32, V: int, K: int, *, others: I32 | None = None) -> Counts:
    """The counts of topics z [N], and of others' [V, K] if there are any.

    By one thread: two that each look for their own words take twice as long (1.1 million tokens: 10 and 5 ms).
    """
    cells = np.zeros((V, padded_width(K)), dtype=np.float32)
    if others is not None:
        cells[:, :K] = others
    count_tokens(words, freeze(z, np.int32), cells.reshape(-1), cells.shape[1])
    return Counts(cells, np.rint(cells[:, :K].sum(axis=0, dtype=np.float64)).astype(np.int64))


def sweep(
    words: I32, documents: I64, z: I32, counts: Counts, alpha: F64, beta: float, key: np.uint64,
    average: Average = NO_AVERAGE, threads: int = 1,
) -> Pass:  # fmt: skip
    """Redraw every topic; z, the counts and the average change in place."""
    K, (V, width) = len(alpha), counts.cells.shape
    histograms, log_sum = np.zeros((threads, K, COLUMNS), dtype=np.int64), np.zeros(1, dtype=np.int64)
    changed = 0
    pull = alpha / (counts.topics + V * beta)
    row = pad_with_zeros(pull)
    sums = np.empty(V, dtype=np.float32)
    parallel.run(sum_block, [(counts.cells, row, *some, sums) for some in parallel.even(V, threads)], threads)
    still = (row, sums, *ladder(pull), np.float32(beta))
    ranges = parallel.cuts(np.concatenate(([0.0], np.cumsum(sums, dtype=np.float64))), threads)  # of words
    for first, last in parallel.cuts(documents, BLOCKS):
        inverse = (1.0 / (counts.topics + V * beta)).astype(np.float32)
        without = (1.0 / (np.maximum(counts.topics - 1, 0) + V * beta)).astype(np.float32)
        fixed = Fixed(counts.cells, inverse, without, *still)
        block = _block(documents, first, last, threads)
        jobs = [(words, documents, z, fixed, key, block, COLUMN_OF, mine, log_sum) for mine in histograms]
        parallel.run(draw_shares, jobs, threads)
        where = (counts.cells.reshape(-1), width, counts.topics, *average)
        moves = [(words, documents, z, block, *some, *where) for some in ranges]
        changed += sum(parallel.run(move_block, moves, threads))
    lengths = np.diff(documents)
    lengths = lengths[lengths > 0]
    likelihood = log_sum[0] / _UNIT - float((lengths * np.log(lengths - 1 + alpha.sum())).sum())
    return Pass(changed, histograms.sum(axis=0), likelihood)


def run_beside(
    words: I32, documents: I64, z: I32, others: I32, alpha: F64, beta: float, keys: Sequence[int], adds_up: bool,
    threads: int = 1,
) -> tuple[I32, I32, I32]:  # fmt: skip
    """Sweep with each of these keys beside the others' counts [V, K], which stand still (AD-LDA, Newman, JMLR 2009).

    Returns the new topics, one's own counts [V, K], and those after each sweep added up; [V, 0] if not wanted.
    """
    V, K = others.shape
    words, documents = check_documents(words, documents, V)
    z = check_assignment(z, len(words), K)
    counts = count(words, z, V, K, others=others)
    total = np.zeros((V, counts.cells.shape[1] if adds_up else 0), dtype=np.int32)
    if adds_up:
        total[:, :K] = (counts.cells[:, :K].astype(np.int32) - others) * len(keys)
    for s, key in enumerate(keys):
        average = Average(total.reshape(-1), len(keys) - s) if adds_up else NO_AVERAGE
        sweep(words, documents, z, counts, alpha, beta, derive(key, 0), average, threads)
    return z, counts.cells[:, :K].astype(np.int32) - others, total[:, :K]


@kernel
def count_tokens(words: I32, z: I32, cells: F32, width: int) -> None:
    """Count all tokens in cells [V * width]."""
    for i in range(z.shape[0]):
        cells[words[i] * width + z[i]] += np.float32(1.0)


@kernel
def sum_block(cells: F32, pull: F32, first: int, last: int, sums: F32) -> None:
    """The sums over topics of pull_k C_wk, of words first..last-1."""
    for w in range(first, last):
        sums[w] = dot(pull, cells, w)


def _block(documents: I64, first: int, last: int, threads: int) -> _Block:
    shares = parallel.cuts(documents[first : last + 1], 1 if threads == 1 else _SHARES * threads)
    edges = np.array([first + a for a, _ in shares] + [last], dtype=np.int64)
    n = int(documents[last] - documents[first])
    moved, before = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    return _Block(edges, moved, before, np.zeros(len(shares), dtype=np.int64), np.zeros(1, dtype=np.int64))


@kernel
def move_block(
    words: I32, documents: I64, z: I32, block: _Block, first: int, last: int, cells: F32, width: int, topics: I64,
    total: I32, left: int,
) -> int:  # fmt: skip
    """Count moved tokens where they were drawn to, and no longer where they were; return how many there are.

    Of words first..last-1: other threads have other words. To add at the same cells at the same time takes far longer.
    Tokens of these words are listed before they are counted, for no processor can guess which they are.
    """
    edges, moved, before, n_moved, _ = block
    gained, mine, one = np.zeros(topics.shape[0], dtype=np.int64), np.int64(0), np.float32(1.0)
    listed, base, many = np.empty_like(moved), documents[edges[0]], np.uint32(last - first)
    for share in range(n_moved.shape[0]):
        begin, n = documents[edges[share]] - base, np.uintp(0)
        for j in range(begin, begin + n_moved[share]):
            listed[n] = j
            n += np.uintp(np.uint32(words[np.uintp(base + moved[np.uintp(j)])] - first) < many)
        for j in range(n):
            at = np.uintp(listed[j])
            i = np.uintp(base + moved[at])
            row, old, new = np.int64(words[i]) * width, before[at], z[i]
            gained[old] -= 1
            gained[new] += 1
            cells[np.uintp(row + old)] -= one
            cells[np.uintp(row + new)] += one
            if left > 0:
                total[np.uintp(row + old)] -= left
                total[np.uintp(row + new)] += left
        mine += np.int64(n)
    for k in range(topics.shape[0]):
        fetch_add(topics, k, gained[k])
    return int(mine)


@kernel
def draw_shares(
    words: I32, documents: I64, z: I32, fixed: Fixed, key: np.uint64, block: _Block, column_of: U8, histogram: I64,
    log_sum: I64,
) -> None:  # fmt: skip
    """Draw the topics of one share after the other, until all are taken."""
    K, most, logs = fixed.inverse.shape[0], column_of.shape[0] - 1, np.int64(0)
    held, place = np.empty(K + 1, dtype=np.uint32), np.full(K, -1, dtype=np.int32)
    count, pull = np.empty(K + 1, dtype=np.float32), np.empty(K + 1, dtype=np.float32)
    running, scratch = np.empty(K + 1, dtype=np.float32), np.empty(fixed.pull.shape[0], dtype=np.float32)
    edges, moved, before, n_moved, taken = block
    base = documents[edges[0]]
    while True:
        share = fetch_add(taken, 0, 1)
        if share >= n_moved.shape[0]:
            break
        n = documents[edges[share]] - base
        for d in range(edges[share], edges[share + 1]):
            start, stop = documents[d], documents[d + 1]
            m = hold(z, start, stop, fixed.inverse, held, place, count, pull)
            m, n, log_chance = draw_document(
                words, start, stop, z, fixed, key, moved, before, base, n, m, held, place, count, pull, running, scratch
            )
            logs += np.int64(log_chance * _UNIT)
            for j in range(m):
                k = np.int64(held[j])
                place[k] = -1
                histogram[k, column_of[min(np.int64(count[j]), most)]] += 1
        n_moved[share] = n - (documents[edges[share]] - base)
    fetch_add(log_sum, 0, logs)
