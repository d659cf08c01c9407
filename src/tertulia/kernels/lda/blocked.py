"""Collapsed Gibbs in blocks of documents: the draw of `gibbs`, over the few topics that a document holds.

`document_draw` draws a token's topic. The counts of its document follow each move at once. The counts of words and
topics stand still within a block of documents, an eighth of the corpus, and the moves of a block are counted when all
of it is drawn. So threads share only whole numbers, which add up to the same in any order. A barrier ends every block.

The sweep also finds how likely each document's tokens are given all others, and how many tokens each of its topics has:
`log_likelihood` shows when training has settled, and alpha is learned from the histogram.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, U8
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import barrier_wait, fetch_add
from tertulia.kernels.core.checks import check_assignment, check_documents
from tertulia.kernels.core.guide_table import guide_table
from tertulia.kernels.core.jit import inner_kernel, lean_kernel
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.scalars import larger, smaller
from tertulia.kernels.core.simd import dot, fetch_cell, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.counts import counts
from tertulia.kernels.lda.document_draw import FixedCounts, Workspace, collect_topics, draw_document, make_workspace
from tertulia.kernels.lda.priors import COLUMN_OF, COLUMNS

BLOCKS = 8  # of a sweep; with 4 perplexity ends 1 % higher (2,593 abstracts, K = 100), with 64 no lower
MOST_TOKENS = 2**24  # of a word: up to here float32 counts exactly
_SHARES = 32  # of a block for each thread: with small shares no thread waits long at the block's end
_COUNT_AHEAD = 8  # moves whose counts are fetched before they change
_SPREAD = np.uint32(0x9E3779B9)  # of Fibonacci hashing: words of all ranks for every thread
_UNIT = 2.0**20  # logarithms are added up as whole numbers of 1 / _UNIT, in any order


class Counts(NamedTuple):
    """Tokens of word w in topic k, and of topic k; the counts of other parties are added to them."""

    cells: F32  # [V, padded K] whole numbers
    topics: I64  # [K]


class Average(NamedTuple):
    """The sum of the counts of several sweeps: a move counts for its sweep and for all that are left."""

    cells: I32  # [V * padded K]
    left: int  # sweeps, with this one; 0: nothing is added up


class Pass(NamedTuple):
    """The results of a sweep."""

    changed: int  # topics
    histogram: I64  # [K, COLUMNS] documents by how many tokens a topic has, see `priors`
    log_likelihood: float  # of every token given all others, added up


class _Blocks(NamedTuple):
    """Blocks of documents between which counts change, cut into shares that threads take from a queue."""

    edges: I64  # [blocks, shares+1] documents; a block may have fewer shares, then its last ones are empty
    taken: I64  # [blocks] shares so far
    moved: I32  # words of the block's tokens that moved; each share writes at the place of its tokens
    before: I32  # their old topics
    after: I32  # their new topics
    n_moved: I64  # [shares]


class _ThreadArrays(NamedTuple):
    """The arrays of one thread."""

    thread: int
    fixed: FixedCounts
    histogram: I64  # [K, COLUMNS] of the documents that it draws
    workspace: Workspace
    listed: I32  # moves of its words, in a block
    gained: I64  # [K] tokens by these moves


NO_AVERAGE = Average(np.zeros(0, dtype=np.int32), 0)


def count(words: I32, z: I32, V: int, K: int, *, others: I32 | None = None) -> Counts:
    """Count topics z [N], and add the others' counts [V, K] if there are any."""
    counted = counts(words, z, V, K)
    cells, topics = np.zeros((V, padded_width(K)), dtype=np.float32), counted.sum(axis=0, dtype=np.int64)
    cells[:, :K] = counted
    if others is not None:  # from a server: no values of theirs can overflow
        cells[:, :K] += others
        topics += others.sum(axis=0, dtype=np.int64)
    return Counts(cells, topics)


def sweep(
    words: I32, documents: I64, z: I32, counts: Counts, alpha: F64, beta: float, key: np.uint64,
    average: Average = NO_AVERAGE, threads: int = 1,
) -> Pass:  # fmt: skip
    """Redraw every topic; z, the counts and the average change in place."""
    V, threads = len(counts.cells), parallel.threads_allowed(threads)
    pull = alpha / (counts.topics + V * beta)
    still = (pad_with_zeros(pull), np.empty(V, dtype=np.float32), *guide_table(pull), np.float32(beta))
    log_sum, prior, blocks = np.zeros(1, dtype=np.int64), V * beta, _blocks(documents, threads)
    own = [_own(counts, thread, still, len(blocks.moved)) for thread in range(threads)]
    given = (words, documents, z, counts.topics, prior, average, key, blocks, COLUMN_OF, log_sum)
    changed = sum(parallel.run_with_barrier(sweep_blocks, [(threads, one, *given) for one in own]))
    lengths = np.diff(documents)
    lengths = lengths[lengths > 0]
    likelihood = log_sum[0] / _UNIT - float((lengths * np.log(lengths - 1 + alpha.sum())).sum())
    return Pass(changed, np.sum([one.histogram for one in own], axis=0), likelihood)


def run_beside(
    words: I32, documents: I64, z: I32, others: I32, alpha: F64, beta: float, keys: Sequence[int], adds_up: bool,
    threads: int = 1,
) -> tuple[I32, I32, I32]:  # fmt: skip
    """Sweep with each of these keys beside the others' counts [V, K], which stand still (AD-LDA, Newman, JMLR 2009).

    Return the new topics, the party's own counts [V, K], and the sum of its counts after each sweep if `adds_up`.
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


def _blocks(documents: I64, threads: int) -> _Blocks:
    shares = 1 if threads == 1 else _SHARES * threads
    firsts, lasts = np.array(parallel.cuts(documents, BLOCKS), dtype=np.int64).reshape(-1, 2).T
    sizes = documents[lasts] - documents[firsts]
    goals = documents[firsts][:, None] + sizes[:, None] * np.arange(shares + 1) // shares
    edges = np.maximum(np.searchsorted(documents, goals), firsts[:, None])  # empty documents before it stay out
    edges[:, -1] = lasts
    moved, before, after = (np.empty(sizes.max(initial=0), dtype=np.int32) for _ in range(3))
    return _Blocks(edges, np.zeros(len(edges), dtype=np.int64), moved, before, after, np.zeros(shares, dtype=np.int64))


def _own(counts: Counts, thread: int, still: tuple[Any, ...], most_moved: int) -> _ThreadArrays:
    K = len(counts.topics)
    inverse, without = (np.empty(K, dtype=np.float32) for _ in range(2))
    histogram, fixed = np.zeros((K, COLUMNS), dtype=np.int64), FixedCounts(counts.cells, inverse, without, *still)
    listed, gained = np.empty(most_moved, dtype=np.int32), np.empty(K, dtype=np.int64)
    return _ThreadArrays(thread, fixed, histogram, make_workspace(K), listed, gained)


@lean_kernel
def sweep_blocks(
    barrier: I64, threads: int, own: _ThreadArrays, words: I32, documents: I64, z: I32, topics: I64, prior: float,
    average: Average, key: np.uint64, blocks: _Blocks, column_of: U8, log_sum: I64,
) -> int:  # fmt: skip
    """Do one thread's part of a sweep: shares of each block, and the moves of its words; return how many moves.

    Threads synchronise inside the kernel when a block is drawn and when it is counted. To wake them from Python would
    take 0.15 ms on two cores of a rented machine, sixteen times in a sweep of 30 ms.
    """
    thread, fixed, histogram, workspace, listed, gained = own
    held, place, count, pull, running, scratch = workspace
    edges, taken, moved, before, after, n_moved = blocks
    changed, logs, most, V = 0, np.int64(0), column_of.shape[0] - 1, fixed.cells.shape[0]
    for w in range(V * thread // threads, V * (thread + 1) // threads):
        fixed.sums[w] = dot(fixed.pull, fixed.cells, w)
    if not barrier_wait(barrier, threads):
        return changed
    for b in range(taken.shape[0]):
        for k in range(topics.shape[0]):
            fixed.inverse[k] = 1.0 / (topics[k] + prior)
            fixed.without[k] = 1.0 / (larger(topics[k] - 1, 0) + prior)
        share, base = fetch_add(taken, b, 1), documents[edges[b, 0]]
        while share < n_moved.shape[0]:
            n = documents[edges[b, share]] - base
            for d in range(edges[b, share], edges[b, share + 1]):
                start, stop = documents[d], documents[d + 1]
                m = collect_topics(z, start, stop, fixed.inverse, held, place, count, pull)
                m, n, log_chance = draw_document(
                    words, start, stop, z, fixed, key, moved, before, after, n, m, held, place, count, pull, running,
                    scratch,
                )  # fmt: skip
                logs += np.int64(log_chance * _UNIT)
                for j in range(m):
                    topic = np.int64(held[j])
                    place[topic] = -1
                    histogram[topic, column_of[smaller(np.int64(count[j]), most)]] += 1
            n_moved[share] = n - (documents[edges[b, share]] - base)
            share = fetch_add(taken, b, 1)
        if not barrier_wait(barrier, threads):
            break
        changed += move_block(documents, blocks, b, thread, threads, fixed.cells, topics, average, listed, gained)
        if not barrier_wait(barrier, threads):
            break
    fetch_add(log_sum, 0, logs)
    return changed


@inner_kernel
def move_block(
    documents: I64, blocks: _Blocks, b: int, thread: int, threads: int, cells: F32, topics: I64, average: Average,
    listed: I32, gained: I64,
) -> int:  # fmt: skip
    """Count moved tokens where they were drawn to, and no longer where they were; return how many there are.

    Each thread has words of its own, by a hash: adding to the same cells at the same time takes far longer. Tokens of
    these words are listed before they are counted, for a branch on the hash could not be predicted.
    """
    edges, _, moved, before, after, n_moved = blocks
    (total, left), width, many = average, np.uintp(cells.shape[1]), np.uint64(threads)
    mine, one, base = np.int64(0), np.float32(1.0), documents[edges[b, 0]]
    for k in range(topics.shape[0]):
        gained[k] = 0
    for share in range(n_moved.shape[0]):
        begin, n = documents[edges[b, share]] - base, np.uintp(0)
        for j in range(begin, begin + n_moved[share]):
            listed[n] = j
            hashed = np.uint64(np.uint32(np.uint32(moved[np.uintp(j)]) * _SPREAD))
            n += np.uintp((hashed * many) >> np.uint64(32) == np.uint64(thread))
        for j in range(n):
            if j + _COUNT_AHEAD < n:
                at = np.uintp(listed[j + _COUNT_AHEAD])
                fetch_cell(cells, moved[at], before[at])
                fetch_cell(cells, moved[at], after[at])
            at = np.uintp(listed[j])
            w, old, new = np.uintp(moved[at]), np.uintp(before[at]), np.uintp(after[at])
            gained[old] -= 1
            gained[new] += 1
            cells[w, old] -= one
            cells[w, new] += one
            if left > 0:
                total[w * width + old] -= left
                total[w * width + new] += left
        mine += np.int64(n)
    for k in range(topics.shape[0]):
        fetch_add(topics, k, gained[k])
    return int(mine)
