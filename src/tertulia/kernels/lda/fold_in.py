"""Theta of unseen documents under fixed topics, by EM: the MAP estimate under a Dirichlet(alpha + 1) prior.

Each iteration is theta_k <- alpha_k + sum_i theta_k phi_kw_i / sum_j theta_j phi_jw_i, normalised. `theta` makes a
fixed number of them: it is the estimator of every score. `settle` stops where shares have settled, and gets there in
fewer steps: after every two it follows their curve (SQUAREM: Varadhan and Roland 2008, "Simple and Globally Convergent
Methods for Accelerating the Convergence of Any EM Algorithm").
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.checks import check_alpha, check_documents, check_topics
from tertulia.kernels.core.em import FOUR, advance, attract
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.scalars import copy_cells
from tertulia.kernels.core.simd import add, dot, empty_in_lines, fetch_cell, pad_with_zeros, total
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.counts import frequency

# 0.02 takes 4 to 8 steps (20 to 1,000 topics, 20 Newsgroups and IMDB), and completes documents no worse than 20 plain
# ones; at 0.01 it is 0.14 % worse at 1,000 topics (20 Newsgroups): a MAP estimate that settles too well fits too well.
TOLERANCE = 0.02
# Cells and topics at a time when phi is turned from topic-major to word-major: half a megabyte fits the cache, and of a
# topic's row much is read at once. With what is needed next on its way, 11,185 words take 2.4 ms at 100 topics and
# 38 at 1,000; 3.4 and 60 without.
_CELLS, _TOPICS = 51_200, 8
_LEAST = 1e-300  # mass of a word that has any; of less there is no inverse
_FAINT = 1e-20  # a share of a word that cannot matter; numbers near the end of float32 cost a hundred others
_FARTHEST = np.float32(100.0)  # steps ahead to look; curves that rounding made straight would lead anywhere
_THETA, _BEFORE, _NEXT, _MOVE, _BEND, _ONES = range(6)  # rows of scratch


def theta(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, iterations: int = 20, threads: int = 1
) -> F64:
    """Infer topic shares [D, K] of documents; unknown words are ignored, and empty documents get alpha's mean.

    `words` [N] are token indices into the columns of `topic_word` [K, V]; `documents` [D+1] are token offsets.
    """
    topic_word = check_topics(topic_word)
    words, documents, alpha = _check(words, documents, topic_word, alpha, iterations, threads)
    phi, rows = phi_by_word(topic_word, words, threads)
    shares = np.empty((len(documents) - 1, len(topic_word)))
    jobs = [
        (words, documents, first, last, rows, phi, alpha, iterations, shares)
        for first, last in parallel.cuts(documents, threads)
    ]
    parallel.run(_fold_block, jobs, threads)
    return shares


def settle(
    words: Array,
    documents: Array,
    topic_word: Array,
    alpha: float | Array,
    iterations: int = 100,
    threads: int = 1,
    tolerance: float = TOLERANCE,
) -> F64:
    """Infer the same under a model's own topics, each document until a step moves less than `tolerance` of its mass.

    A step that moves mass m between topics changes shares by 2 m in all; `iterations` bounds the number of steps.
    Masses of topics are not checked again: a model has done so, and on 1,000 documents that took 15 % of the time.
    """
    words, documents, alpha = _check(words, documents, topic_word, alpha, iterations, threads)
    if not tolerance >= 0.0:
        raise InputError(f"tolerance = {tolerance}: it is a share of a document, write a number from 0 to 1")
    phi, rows = phi_by_word(topic_word, words, threads)
    shares = np.empty((len(documents) - 1, len(topic_word)))
    jobs = [
        (words, documents, first, last, rows, phi, alpha, iterations, np.float32(tolerance), shares)
        for first, last in parallel.shares(documents, threads)
    ]
    parallel.run(_settle_block, jobs, threads)
    return shares


def _check(
    words: Array, documents: Array, topic_word: Array, alpha: float | Array, iterations: int, threads: int
) -> tuple[I32, I64, F32]:
    K, V = topic_word.shape
    if iterations < 1 or threads < 1:
        raise InputError(f"iterations = {iterations}, threads = {threads}: fold-in needs at least 1 of each")
    return *check_documents(words, documents, V), pad_with_zeros(check_alpha(alpha, K))


def phi_by_word(topic_word: Array, words: I32, threads: int) -> tuple[F32, I32]:
    """Return phi's rows [words in use + 1, padded K], scaled to a maximum of 1 (EM ignores the scale), and words' rows.

    The scale keeps words of tiny mass within float32; a word without any mass keeps a row of zeros, and so is the last.
    """
    K, V = topic_word.shape
    used = np.flatnonzero(frequency(words, V))
    row = np.zeros(V, dtype=np.int32)
    row[used] = np.arange(len(used))
    phi = empty_in_lines(len(used) + 1, padded_width(K))
    phi[-1] = 0.0
    source = freeze(topic_word, topic_word.dtype if topic_word.dtype in (np.float32, np.float64) else np.float64)
    cuts = parallel.even(len(used), threads if threads == 1 else 8 * threads)
    parallel.run(_turn_block, [(source, used, first, last, phi) for first, last in cuts], threads)
    return phi, row


@kernel
def _turn_block(topic_word: F64, used: I64, first: int, last: int, phi: F32) -> None:
    """Transpose columns of topic_word [K, V] into rows first..last-1 of phi."""
    K = topic_word.shape[0]
    most = max(_CELLS // K, 16)
    mass, peak = np.empty((most, K)), np.empty(most)
    for start in range(first, last, most):
        n = min(most, last - start)
        peak[:] = 0.0
        for topic in range(0, K, _TOPICS):
            for j in range(n):
                w = used[start + j]
                if topic + 2 * _TOPICS <= K:
                    for k in range(topic + _TOPICS, topic + 2 * _TOPICS):
                        fetch_cell(topic_word, k, w)
                for k in range(topic, min(topic + _TOPICS, K)):
                    mass[j, k] = topic_word[k, np.uintp(w)]  # unsigned: no check for a negative index
                    peak[j] = max(peak[j], mass[j, k])
        for j in range(n):
            inverse = 1.0 / peak[j] if peak[j] > _LEAST else 0.0
            for k in range(K):
                share = mass[j, k] * inverse
                phi[start + j, k] = share if share >= _FAINT else 0.0
            phi[start + j, K:] = 0.0


@kernel
def _fold_block(
    words: I32, documents: I64, first: int, last: int, rows: I32, phi: F32, alpha: F32, iterations: int, shares: F64
) -> None:
    K = shares.shape[1]
    theta = np.empty(alpha.shape[0], dtype=np.float32)
    pull = np.empty(alpha.shape[0], dtype=np.float32)
    place = np.full(phi.shape[0], -1, dtype=np.int64)  # of a row among those of the document
    longest = 0
    for d in range(first, last):
        longest = max(longest, documents[d + 1] - documents[d])
    mine, count = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.float32)
    for d in range(first, last):
        n = _distinct(words, documents[d], documents[d + 1], rows, place, mine, count)
        theta[:] = 1.0
        theta[K:] = 0.0
        for _ in range(iterations):
            pull[:] = 0.0
            for j in range(n):
                mass = dot(theta, phi, mine[j])
                if mass > 0.0:
                    add(pull, count[j] / mass, phi, mine[j])
            for k in range(alpha.shape[0]):
                theta[k] = alpha[k] + theta[k] * pull[k]
        whole = total(theta)
        for k in range(K):
            shares[d, k] = theta[k] / whole


@kernel
def _settle_block(
    words: I32,
    documents: I64,
    first: int,
    last: int,
    rows: I32,
    phi: F32,
    alpha: F32,
    iterations: int,
    tolerance: np.float32,
    shares: F64,
) -> None:
    scratch = np.zeros((6, alpha.shape[0]), dtype=np.float32)
    scratch[_ONES] = 1.0
    place = np.full(phi.shape[0], -1, dtype=np.int64)
    longest = 0
    for d in range(first, last):
        longest = max(longest, documents[d + 1] - documents[d])
    mine, count = np.empty(longest + FOUR, dtype=np.int64), np.empty(longest + FOUR, dtype=np.float32)
    for d in range(first, last):
        n = _distinct(words, documents[d], documents[d + 1], rows, place, mine, count)
        mine[n : n + FOUR], count[n : n + FOUR] = phi.shape[0] - 1, 0.0  # no mass, so no pull
        _settle(mine, count, n, phi, alpha, iterations, tolerance, scratch)
        whole = dot(scratch[_THETA], scratch, _ONES)
        for k in range(shares.shape[1]):
            shares[d, k] = scratch[_THETA, k] / whole


@kernel
def _settle(
    mine: I64, count: F32, n: int, phi: F32, alpha: F32, iterations: int, tolerance: np.float32, scratch: F32
) -> None:
    """Leave theta of one document in its row of scratch; what is left is always what a plain step gave."""
    theta, before, ahead = scratch[_THETA], scratch[_BEFORE], scratch[_NEXT]
    theta[:], least = 1.0, np.float32(0.0)
    for step in range(iterations):
        ahead[:] = 0.0
        for j in range(0, n, FOUR):
            attract(theta, ahead, phi, mine, count, j)
        moved = advance(theta, ahead, alpha)
        if step == 0:
            least = tolerance * dot(ahead, scratch, _ONES)  # the whole mass: no step changes it any more
        if moved <= least or step == iterations - 1:
            copy_cells(ahead, theta)
            return
        if step > 0 and step % 2 == 0:
            _look_ahead(alpha, scratch)
        else:
            copy_cells(theta, before)
            copy_cells(ahead, theta)


@kernel
def _look_ahead(alpha: F32, scratch: F32) -> None:
    """Follow the parabola through three thetas, one step apart, as far as its bend lets (their scheme S3).

    Every step leaves theta_k >= alpha_k, so theta_k is floored there. EM converges from any point that this leads to.
    """
    theta, before, ahead = scratch[_THETA], scratch[_BEFORE], scratch[_NEXT]
    move, bend = scratch[_MOVE], scratch[_BEND]
    for k in range(alpha.shape[0]):
        move[k] = theta[k] - before[k]
        bend[k] = ahead[k] - theta[k] - move[k]
    bent, far = dot(bend, scratch, _BEND), np.float32(1.0)
    if bent > 0.0:
        far = min(max(np.float32(np.sqrt(dot(move, scratch, _MOVE) / bent)), far), _FARTHEST)
    for k in range(alpha.shape[0]):
        theta[k] = max(alpha[k], before[k] + far * (move[k] + move[k] + far * bend[k]))


@kernel
def _distinct(words: I32, start: int, stop: int, rows: I32, place: I64, mine: I64, count: F32) -> int:
    """List the distinct rows of a document's words, and how often each occurs; return their number."""
    n = 0
    for i in range(start, stop):  # without a branch: whether a word is new cannot be guessed
        r = rows[words[i]]
        new = place[r] < 0
        j = n if new else place[r]
        count[n] = 0.0
        place[r], mine[j] = j, r
        count[j] += np.float32(1.0)
        n += new
    for j in range(n):
        place[mine[j]] = -1
    return n
