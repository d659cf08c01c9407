"""The draw of collapsed Gibbs over the few topics that a document holds (cf. SparseLDA, Yao et al., KDD 2009).

A token of word w gets topic k with probability
    p(k) ∝ (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta),   its own count left out (of C_k in the first part only),
which has three parts:
    C_dk (C_wk + beta) / (C_k + V beta)      zero but for the topics that the document holds, some ten
    alpha_k C_wk / (C_k + V beta)            of which a sum per word is kept; drawn from the word's row, seldom
    alpha_k beta / (C_k + V beta)            the same for all words
C_dk follows each move at once; C_wk and C_k stand still. The sums per word are those of the sweep's start.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32
from tertulia.kernels.core.guide_table import search
from tertulia.kernels.core.jit import inner_kernel
from tertulia.kernels.core.rng import mix, uniform32
from tertulia.kernels.core.scalars import larger, smaller
from tertulia.kernels.core.simd import draw, fetch_cell
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.word_columns import U32

_AHEAD = 3  # tokens whose counts are fetched before they are needed: at K = 1000 a sweep takes a quarter less
_ALMOST = np.float32(0.9999999)  # 1, which no share may be
_TRIES = 16  # to draw a topic that is not the token's own count
_LOGS = 16  # tokens whose probabilities are multiplied before a logarithm is taken


class FixedCounts(NamedTuple):
    """The arrays that stand still within a block."""

    cells: F32  # [V, padded K]
    inverse: F32  # [K] 1 / (C_k + V beta)
    without: F32  # [K] the same, one token left out
    pull: F32  # [padded K] alpha_k / (C_k + V beta), of the sweep's start
    sums: F32  # [V] over k of pull_k C_wk, of the sweep's start
    upto: F64  # [K] running sums of pull
    guide: I32
    beta: np.float32


class Workspace(NamedTuple):
    """Scratch arrays for one document, [K + 1] unless noted; made in Python, so that kernels compile faster."""

    held: U32  # topics of the document
    place: I32  # [K] where a topic stands among these; -1: nowhere
    counts: F32  # C_dk
    pull: F32  # C_dk / (C_k + V beta)
    running: F32
    scratch: F32  # [padded K]


def make_workspace(K: int) -> Workspace:
    """Allocate the workspace of one thread, as `collect_topics` expects it."""
    counts, pull, running = (np.empty(K + 1, dtype=np.float32) for _ in range(3))
    place, scratch = np.full(K, -1, dtype=np.int32), np.empty(padded_width(K), dtype=np.float32)
    return Workspace(np.empty(K + 1, dtype=np.uint32), place, counts, pull, running, scratch)


@inner_kernel
def collect_topics(z: I32, start: int, stop: int, inverse: F32, held: U32, place: I32, count: F32, pull: F32) -> int:
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


# One function, for calls would count references for every token; unsigned indices are not checked for their sign.
@inner_kernel
def draw_document(
    words: I32, start: int, stop: int, z: I32, fixed: FixedCounts, key: np.uint64, moved: I32, before: I32, after: I32,
    n_moved: int, m: int, held: U32, place: I32, count: F32, pull: F32, running: F32, scratch: F32,
) -> tuple[int, int, float]:  # fmt: skip
    """Draw the topics z of a document; return its topics, the tokens listed as moved, and its log likelihood."""
    cells, inverse, without, alpha, sums, upto, _, beta = fixed
    one, none, moves = np.float32(1.0), np.uintp(0), np.uintp(n_moved)  # listed so far
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
        rest = larger(sums[w] - alpha[old], np.float32(0.0))
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
        if new == old:
            pull[own] = (c + one) * inverse[old]
            continue
        z[np.uintp(i)], moved[moves], before[moves], after[moves] = new, w, old, new
        moves += np.uintp(1)
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
    return int(n), int(moves), log_chance + math.log(chance)


@inner_kernel
def _draw_beyond(
    goal: np.float32, rest: np.float32, floor: np.float32, fixed: FixedCounts, w: np.uintp, old: np.uintp, scratch: F32,
    key: np.uint64, i: int,
) -> int:  # fmt: skip
    """Draw the topic at `goal` of the parts with alpha: rest, of the word's row, and floor, the same for all words.

    A row counts the token itself: its old topic is drawn again with probability 1 / C_wk.
    """
    if goal >= rest:
        return search(fixed.upto, fixed.guide, np.float64(smaller((goal - rest) / floor, _ALMOST)))
    u, again = goal / rest, mix(key)
    for t in range(_TRIES):
        new = draw(fixed.pull, fixed.cells, int(w), scratch, u, int(old))
        chance = uniform32(again, np.uint64(2 * (_TRIES * i + t)))
        if new != old or chance * fixed.cells[w, old] >= np.float32(1.0):
            return new
        u = uniform32(again, np.uint64(2 * (_TRIES * i + t) + 1))
    return int(old)
