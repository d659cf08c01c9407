"""One epoch of online EM for LDA (Cappé and Moulines, JRSS B 2009; cf. SCVB0, Foulds et al., KDD 2013): a warm start.

Documents come in mini-batches. The E-step folds each into the topics so far, theta_k <- alpha_k + sum_i r_ik with
r_ik ∝ theta_k phi_kw_i; the M-step moves the expected counts towards those of the batch, blown up to the whole corpus,
    s_wk <- (1 - rho_t) s_wk + rho_t (N / n_t) sum_i r_ik,   rho_t = (delay + t)^-0.9,   phi_kw ∝ s_wk + beta.
The decay is kept as one number, `scale`, so that a batch costs nothing for words that it lacks. The steps are those of
`dense_step`, with all topics in play, or of `sparse_step`, for many topics.

All threads go through the batches together, and take documents and parts of the words as they come free. Who
takes what changes nothing, and sums over parts have one order: the same bits at any number of threads.

Measured on 20 Newsgroups with K = 100: five sweeps from here are as good as seventy from a random start, and the epoch
costs as much as four. A second epoch gains little.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import extending, types

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.atomics import fetch_add, gate, meet
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.simd import inverse_counts, pad_with_zeros
from tertulia.kernels.lda.dense import frequency
from tertulia.kernels.lda.online_em import dense_step, sparse_step
from tertulia.kernels.lda.online_em.batch import PARTS, Course, Room, batch_at, collect, course, room
from tertulia.kernels.lda.online_em.sparse_counts import Mass, initial_mass

overload: Any = extending.overload
_SHARES = 64  # of the documents of a batch, for threads to take


def all_topics(words: I32, documents: I64, V: int, alpha: F64, beta: float, key: np.uint64, threads: int = 1) -> F32:
    """The topics after one epoch: phi [V, padded K], as `dense` takes it."""
    stats, ck = dense_step.random_stats(frequency(words, V), len(alpha), key, threads)
    rows, work = freeze(np.arange(V), np.int32), partial(dense_step.room, stats.shape[1])
    scale, ck = _walk(words, documents, rows, stats, ck, work, alpha, beta, threads)
    dense_step.normalise(stats, beta / scale, inverse_counts(ck, V * beta / scale, len(alpha)), threads)
    return stats


def few_topics(
    words: I32, documents: I64, rank: I32, tokens: I64, alpha: F64, beta: float, key: np.uint64, threads: int = 1
) -> tuple[Mass, np.float32, F32]:
    """The topics after one epoch, as mass, base and inverse: phi_kw = (mass_wk + base) inverse_k.

    `rank` [V] orders words by how many `tokens` they have [V], descending; word w has row rank[w] in the mass.
    """
    V, K = len(rank), len(alpha)
    mass, ck = initial_mass(tokens, K, key)
    scale, ck = _walk(words, documents, rank, mass, ck, sparse_step.room, alpha, beta, threads)
    return mass, np.float32(beta / scale), inverse_counts(ck, V * beta / scale, K)


def _walk(
    words: I32, documents: I64, rows: I32, topics: F32 | Mass, ck: F64, work: Callable[[int, int], Any], alpha: F64,
    beta: float, threads: int,
) -> tuple[float, F64]:  # fmt: skip
    """Update expected counts in place, word w at rows[w]; `ck` [padded K] is their sum over words.

    `work` makes what the steps keep of a batch, given the largest numbers of documents and of pairs in one. Returns
    the factor by which counts are larger than they should be, and their new sums.
    """
    threads, plan = parallel.alone_or(threads), course(documents)
    if not len(plan.rate):
        return 1.0, ck
    places = room(documents, plan, len(rows), threads)
    made = work(places.longest.shape[1], places.words.shape[1])
    sums, taken = np.empty((2, PARTS, len(ck)), dtype=np.float32), np.zeros(2 * len(plan.rate), dtype=np.int64)
    corpus = (threads, gate(), taken, words, documents, rows, plan, places)
    model = (topics, made, pad_with_zeros(alpha), len(alpha), beta, sums)
    found: list[tuple[float, F64]] = []

    def go(thread: int) -> None:
        found.append(walk(thread, ck.copy(), *corpus, *model))

    parallel.together([partial(go, thread) for thread in range(threads)])
    return found[0]


def expect(*args: Any) -> None:
    """The E-step for documents first..last-1 of a batch: which one, says the type of the topics."""


def maximise(*args: Any) -> None:
    """The M-step for words first..last-1 of a batch."""


@overload(expect, strict=False)
def _expect(batch: Any, first: Any, last: Any, topics: Any, base: Any, inverse: Any, alpha: Any, work: Any) -> Any:
    step = dense_step.expect if isinstance(topics, types.Array) else sparse_step.expect
    return lambda batch, first, last, topics, base, inverse, alpha, work: step(
        batch, first, last, topics, base, inverse, alpha, work
    )


@overload(maximise, strict=False)
def _maximise(batch: Any, first: Any, last: Any, topics: Any, base: Any, weight: Any, work: Any, sums: Any) -> Any:
    step = dense_step.maximise if isinstance(topics, types.Array) else sparse_step.maximise
    return lambda batch, first, last, topics, base, weight, work, sums: step(
        batch, first, last, topics, base, weight, work, sums
    )


@kernel
def walk(
    thread: int, ck: F64, threads: int, gate: I64, taken: I64, words: I32, documents: I64, rows: I32, course: Course,
    room: Room, topics: F32 | Mass, work: Any, alpha: F32, K: int, beta: float, sums: F32,
) -> tuple[float, F64]:  # fmt: skip
    """What one of the threads does."""
    V, scale = rows.shape[0], 1.0
    gained = np.empty(ck.shape[0], dtype=np.float32)  # its own: rows that share a line of a cache are slow to add to
    for t in range(course.rate.shape[0]):
        slot = t % threads
        if slot == 0:  # each thread collects one of the next batches
            if t + thread < course.rate.shape[0]:
                next_ = t + thread
                collect(words, documents, course.first[next_], course.last[next_], rows, room, thread)
            meet(gate, threads)
        batch, base = batch_at(room, slot), np.float32(beta / scale)
        inverse = inverse_counts(ck, V * beta / scale, K)
        scale *= 1.0 - course.rate[t]
        weight, D = np.float32(course.rate[t] * course.times[t] / scale), batch.longest.shape[0]
        share = fetch_add(taken, 2 * t, 1)
        while share < _SHARES:
            first, last = D * share // _SHARES, D * (share + 1) // _SHARES
            expect(batch, first, last, topics, base, inverse, alpha, work)
            share = fetch_add(taken, 2 * t, 1)
        meet(gate, threads)
        part = fetch_add(taken, 2 * t + 1, 1)
        while part < PARTS:
            gained[:] = 0.0
            first, last = batch.parts[part], batch.parts[part + 1]
            maximise(batch, first, last, topics, base, weight, work, gained)
            sums[t % 2, part] = gained  # of two, for a slow thread may still read the last batch's
            part = fetch_add(taken, 2 * t + 1, 1)
        meet(gate, threads)
        for part in range(PARTS):
            ck += sums[t % 2, part]
    return scale, ck
