"""Collapsed Gibbs in blocks of documents: the draw of `gibbs`, over the few topics that a document holds.

A token of word w is drawn anew with probability
    p(k) ∝ (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta),   its own count left out (of C_k in the first part only),
which has three parts (cf. SparseLDA, Yao et al., KDD 2009):
    C_dk (C_wk + beta) / (C_k + V beta)      zero but for the topics that the document holds, some ten
    alpha_k C_wk / (C_k + V beta)            of which a sum per word is kept; drawn from the word's row, seldom
    alpha_k beta / (C_k + V beta)            the same for all words
C_dk follows each move at once. C_wk and C_k stand still within a block of documents, an eighth of the corpus, and the
moves of a block are counted when all of it is drawn: so threads share nothing but whole numbers that add up to the same
in any order. The sums per word stand still for a sweep.

On the way each document says how likely its tokens are given all others, and how many tokens each of its topics has:
`log_likelihood` tells when training has settled, and alpha is learned from the histogram.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, U8
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.ladder import climb, ladder
from tertulia.kernels.core.rng import derive, mix, uniform32
from tertulia.kernels.core.simd import dot, draw, fetch_cell, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.by_word import U32
from tertulia.kernels.lda.priors import COLUMN_OF, COLUMNS

BLOCKS = 8  # of a sweep; with 4 perplexity ends 1 % higher (2,593 abstracts, K = 100), with 64 no lower
MOST_TOKENS = 2**24  # of a word: up to here float32 counts exactly
_AHEAD = 3  # tokens whose counts are fetched before they are needed: at K = 1000 a sweep takes a quarter less
_TRIES = 16  # to draw a topic that is not the token's own count
_LOGS = 16  # tokens whose probabilities are multiplied before a logarithm is taken
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


class _Fixed(NamedTuple):
    """What stands still within a block."""

    cells: F32  # [V, padded K]
    inverse: F32  # [K] 1 / (C_k + V beta)
    without: F32  # [K] the same, one token left out
    pull: F32  # [padded K] alpha_k / (C_k + V beta), of the sweep's start
    sums: F32  # [V] over k of pull_k C_wk, of the sweep's start
    upto: F64  # [K] running sums of pull
    guide: I32
    beta: np.float32


NO_AVERAGE = Average(np.zeros(0, dtype=np.int32), 0)


def count(words: I32, z: I32, V: int, K: int, threads: int, others: I32 | None = None) -> Counts:
    """The counts of topics z [N], and of others' [V, K] if there are any."""
    cells = np.zeros((V, padded_width(K)), dtype=np.float32)
    if others is not None:
        cells[:, :K] = others
    flat, width = cells.reshape(-1), cells.shape[1]
    parallel.run(count_block, [(words, freeze(z, np.int32), t, threads, flat, width) for t in range(threads)], threads)
    return Counts(cells, np.rint(cells[:, :K].sum(axis=0, dtype=np.float64)).astype(np.int64))


def sweep(
    words: I32, documents: I64, z: I32, counts: Counts, alpha: F64, beta: float, key: np.uint64,
    average: Average = NO_AVERAGE, threads: int = 1,
) -> Pass:  # fmt: skip
    """Redraw every topic; z, the counts and the average change in place."""
    K, (V, width) = len(alpha), counts.cells.shape
    histogram, log_sum, changed = np.zeros((K, COLUMNS), dtype=np.int64), np.zeros(1, dtype=np.int64), 0
    pull = alpha / (counts.topics + V * beta)
    row = pad_with_zeros(pull)
    sums = np.empty(V, dtype=np.float32)
    parallel.run(sum_block, [(counts.cells, row, *some, sums) for some in parallel.even(V, threads)], threads)
    still = (row, sums, *ladder(pull), np.float32(beta))
    for first, last in parallel.cuts(documents, BLOCKS):
        inverse = (1.0 / (counts.topics + V * beta)).astype(np.float32)
        without = (1.0 / (np.maximum(counts.topics - 1, 0) + V * beta)).astype(np.float32)
        fixed = _Fixed(counts.cells, inverse, without, *still)
        base, end = documents[first], documents[last]
        drawn = np.empty(end - base, dtype=np.int32)
        found = (drawn, base, COLUMN_OF, histogram.reshape(-1), log_sum)
        shares = [(first + a, first + b) for a, b in parallel.shares(documents[first : last + 1], threads)]
        parallel.run(draw_block, [(words, documents, *some, z, fixed, key, *found) for some in shares], threads)
        where = (counts.cells.reshape(-1), width, counts.topics, *average)
        moves = [(words, z, base, end, drawn, t, threads, *where) for t in range(threads)]
        changed += sum(parallel.run(move_block, moves, threads))
        z[base:end] = drawn  # not by the threads, which would write side by side on the same lines of the cache
    lengths = np.diff(documents)
    lengths = lengths[lengths > 0]
    likelihood = log_sum[0] / _UNIT - float((lengths * np.log(lengths - 1 + alpha.sum())).sum())
    return Pass(changed, histogram, likelihood)


def run_beside(
    words: I32, documents: I64, z: I32, others: I32, alpha: F64, beta: float, key: int, threads: int = 1
) -> tuple[I32, I32]:
    """Sweep once beside the others' counts [V, K], which stand still (AD-LDA, Newman et al., JMLR 2009).

    Returns the new topics and one's own counts [V, K].
    """
    words, documents = freeze(words, np.int32), freeze(documents, np.int64)
    z = np.array(z, dtype=np.int32)
    V, K = others.shape
    counts = count(words, z, V, K, threads, others)
    sweep(words, documents, z, counts, alpha, beta, derive(key, 0), threads=threads)
    return z, counts.cells[:, :K].astype(np.int32) - others


@kernel
def count_block(words: I32, z: I32, part: int, parts: int, cells: F32, width: int) -> None:
    """Count the tokens of every so many words in cells [V * width]; other threads have other words."""
    for i in range(z.shape[0]):
        if words[i] % parts == part:
            cells[words[i] * width + z[i]] += np.float32(1.0)


@kernel
def sum_block(cells: F32, pull: F32, first: int, last: int, sums: F32) -> None:
    """The sums over topics of pull_k C_wk, of words first..last-1."""
    for w in range(first, last):
        sums[w] = dot(pull, cells, w)


@kernel
def move_block(
    words: I32, z: I32, first: int, last: int, drawn: I32, part: int, parts: int, cells: F32, width: int, topics: I64,
    total: I32, left: int,
) -> int:  # fmt: skip
    """Count tokens first..last-1 where they were drawn to, and no longer where they were; return how many moved.

    Of every so many words: other threads have other words. To add at the same cells at the same time takes far longer.
    """
    gained, moved, one = np.zeros(topics.shape[0], dtype=np.int64), 0, np.float32(1.0)
    for i in range(first, last):
        new = drawn[np.uintp(i - first)]
        old = z[np.uintp(i)]
        if new == old or words[np.uintp(i)] % parts != part:
            continue
        row = np.int64(words[np.uintp(i)]) * width
        gained[old] -= 1
        gained[new] += 1
        moved += 1
        cells[np.uintp(row + old)] -= one
        cells[np.uintp(row + new)] += one
        if left > 0:
            total[np.uintp(row + old)] -= left
            total[np.uintp(row + new)] += left
    for k in range(topics.shape[0]):
        fetch_add(topics, k, gained[k])
    return moved


@kernel
def draw_block(
    words: I32, documents: I64, first: int, last: int, z: I32, fixed: _Fixed, key: np.uint64, drawn: I32, base: int,
    column_of: U8, histogram: I64, log_sum: I64,
) -> None:  # fmt: skip
    """Draw the topics of documents first..last-1."""
    K, most, logs = fixed.inverse.shape[0], column_of.shape[0] - 1, np.int64(0)
    held, place = np.empty(K + 1, dtype=np.uint32), np.full(K, -1, dtype=np.int32)
    count, pull = np.empty(K + 1, dtype=np.float32), np.empty(K + 1, dtype=np.float32)
    running, scratch = np.empty(K + 1, dtype=np.float32), np.empty(fixed.pull.shape[0], dtype=np.float32)
    for d in range(first, last):
        start, stop = documents[d], documents[d + 1]
        m = _hold(z, start, stop, fixed.inverse, held, place, count, pull)
        m, log_chance = _draw_document(
            words, start, stop, z, fixed, key, drawn, base, m, held, place, count, pull, running, scratch
        )
        logs += np.int64(log_chance * _UNIT)
        for j in range(m):
            k = np.int64(held[j])
            place[k] = -1
            fetch_add(histogram, k * COLUMNS + column_of[min(np.int64(count[j]), most)], 1)
    fetch_add(log_sum, 0, logs)


@kernel
def _hold(z: I32, start: int, stop: int, inverse: F32, held: U32, place: I32, count: F32, pull: F32) -> int:
    """List the topics of a document, where each stands in the list, C_dk, and C_dk / (C_k + V beta)."""
    m = 0
    for i in range(start, stop):
        k = np.uintp(z[np.uintp(i)])
        j = place[k]
        if j < 0:
            place[k], held[np.uintp(m)], count[np.uintp(m)] = m, k, 1.0
            m += 1
        else:
            count[np.uintp(j)] += np.float32(1.0)
    for j in range(m):
        pull[j] = count[j] * inverse[held[j]]
    return m


# Not cut into functions, which would count references for every token; unsigned indices are not checked for signs.
@kernel
def _draw_document(
    words: I32, start: int, stop: int, z: I32, fixed: _Fixed, key: np.uint64, drawn: I32, base: int, m: int, held: U32,
    place: I32, count: F32, pull: F32, running: F32, scratch: F32,
) -> tuple[int, float]:  # fmt: skip
    """Draw the topics of tokens start..stop-1; return how many the document holds then, and its log likelihood."""
    cells, inverse, without, alpha, sums, upto, _, beta = fixed
    one, none = np.float32(1.0), np.uintp(0)
    n, floor, chance, log_chance = np.uintp(m), np.float32(upto[-1]) * beta, 1.0, 0.0
    for i in range(start, stop):
        w, old = np.uintp(words[np.uintp(i)]), np.uintp(z[np.uintp(i)])
        if i + _AHEAD < stop:
            for j in range(n):
                fetch_cell(cells, words[np.uintp(i + _AHEAD)], held[j])
        own = np.uintp(place[old])
        c = count[own] - one
        pull[own] = c * without[old] * (one - one / (cells[w, old] + beta))  # times C_wk + beta: without the token
        total = np.float32(0.0)
        for j in range(n):
            total += pull[j] * (cells[w, np.uintp(held[j])] + beta)
            running[j] = total
        rest = max(sums[w] - alpha[old], np.float32(0.0))
        whole = total + rest + floor
        chance *= whole
        if (i - start) % _LOGS == _LOGS - 1:
            log_chance, chance = log_chance + math.log(chance), 1.0
        goal = uniform32(key, np.uint64(i)) * whole
        if goal < total:
            at = none
            for j in range(n):
                at += np.uintp(running[j] <= goal)
            new = np.uintp(held[at])
        else:
            new = np.uintp(_draw_beyond(goal - total, rest, floor, fixed, w, old, scratch, key, i))
        drawn[np.uintp(i - base)] = new
        if new == old:
            pull[own] = (c + one) * inverse[old]
            continue
        count[own], pull[own] = c, c * inverse[old]
        if c == 0.0:  # the last of the list takes its place
            n -= np.uintp(1)
            place[np.uintp(held[n])], place[old] = own, -1
            held[own], count[own], pull[own] = held[n], count[n], pull[n]
        if place[new] < 0:
            place[new], held[n], count[n] = n, new, 0.0
            n += np.uintp(1)
        at = np.uintp(place[new])
        count[at] += one
        pull[at] = count[at] * inverse[new]
    return int(n), log_chance + math.log(chance)


@kernel
def _draw_beyond(
    goal: np.float32, rest: np.float32, floor: np.float32, fixed: _Fixed, w: np.uintp, old: np.uintp, scratch: F32,
    key: np.uint64, i: int,
) -> int:  # fmt: skip
    """The topic at `goal` of the parts with alpha: rest, of the word's row, and floor, the same for all words.

    A row counts the token itself: its old topic is drawn again with probability 1 / C_wk.
    """
    if goal >= rest:
        return climb(fixed.upto, fixed.guide, float(min((goal - rest) / floor, np.float32(0.9999999))))
    u, again = goal / rest, mix(key)
    for t in range(_TRIES):
        new = draw(fixed.pull, fixed.cells, int(w), scratch, u, int(old))
        chance = uniform32(again, np.uint64(2 * (_TRIES * i + t)))
        if new != old or chance * fixed.cells[w, old] >= np.float32(1.0):
            return new
        u = uniform32(again, np.uint64(2 * (_TRIES * i + t) + 1))
    return int(old)
