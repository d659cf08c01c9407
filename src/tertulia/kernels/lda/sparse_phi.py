"""Phi for many topics and words, as sparse rows above a smoothing that all words share: no array is K x V.

phi_wk = scale_k (mass_wk + base). At the posterior mean, (C_wk + beta) / (C_k + V beta), mass is the counts, which are
zero almost everywhere; the cost of a sweep is O(tokens + V + K). Memory: 10 bytes per non-zero, and about 18 more where
a row is long enough to be worth a table for looking topics up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.guide_table import GuideTable, guide_table
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.lda.counts import frequency
from tertulia.kernels.lda.word_columns import U16, Columns, check_topic_count, sort

SHORT = 16  # a row with no more topics is read through and has no table
SCATTER = 0x9E3779B1  # odd, so that a table with a slot for every topic is free of collisions


class Rows(NamedTuple):
    """Row w of phi is at starts[w]..starts[w + 1] - 1; its table, slots of powers of two, at tables[w] and on."""

    starts: I64  # [V+1]
    topics: U16  # [nnz]
    mass: F32  # [nnz] positive
    upto: F32  # [nnz] running sums of alpha_k scale_k mass_wk within a row
    tables: I64  # [V+1]
    slot_topics: U16  # [slots]
    slot_mass: F32  # [slots] 0: the slot is free
    scale: F32  # [K]
    base: float
    floor: GuideTable  # [K] alpha_k scale_k base
    alpha: F64  # [K]
    without: F32  # [K] scale_k without one token, where phi is the mean; empty where it is a draw


def mean_rows(columns: Columns, z: I32, alpha: F64, beta: float, threads: int) -> Rows:
    """Compute the posterior mean of Phi given all tokens' topics, with all that leaving a token out of it needs."""
    V, K = len(columns.starts) - 1, len(alpha)
    check_topic_count(K)
    starts, topics, mass = count(columns, z, K, threads)
    ck = frequency(z, K)
    without = np.reciprocal(np.maximum(ck - 1, 0) + V * beta)
    return _rows(starts, topics, mass, alpha, np.reciprocal(ck + V * beta), without, beta, threads)


def phi_rows(phi: F32, alpha: F64, threads: int) -> Rows:
    """Convert a given Phi, [V, padded K] as `phi.draw_phi` makes it: exact, for models small enough to have one."""
    K = len(alpha)
    check_topic_count(K)
    w, k = np.nonzero(phi[:, :K])
    starts = np.concatenate(([0], np.cumsum(np.bincount(w, minlength=len(phi)))))
    return _rows(starts, k.astype(np.uint16), phi[w, k], alpha, np.ones(K), np.empty(0), 0.0, threads)


def count(columns: Columns, z: I32, K: int, threads: int) -> tuple[I64, U16, F32]:
    """Count topics in words, without zeros: return starts [V+1] of rows, topics [nnz], counts [nnz]."""
    V = len(columns.starts) - 1
    by_word = sort(columns.places, z, threads)
    ranges = parallel.shares(columns.starts, threads)
    starts = np.zeros(V + 1, dtype=np.int64)
    parallel.run(_count_topics, [(columns.starts, by_word, a, b, K, starts) for a, b in ranges], threads)
    np.cumsum(starts, out=starts)
    topics, counts = np.empty(starts[-1], dtype=np.uint16), np.empty(starts[-1], dtype=np.float32)
    jobs = [(columns.starts, by_word, a, b, K, starts, topics, counts) for a, b in ranges]
    parallel.run(_count_block, jobs, threads)
    return starts, topics, counts


def _rows(starts: I64, topics: U16, mass: F32, alpha: F64, scale: F64, without: F64, base: float, threads: int) -> Rows:
    K = len(alpha)
    tables = _table_starts(starts, K)
    rows = Rows(
        starts=starts,
        topics=topics,
        mass=mass,
        upto=np.empty_like(mass),
        tables=tables,
        slot_topics=np.empty(tables[-1], dtype=np.uint16),
        slot_mass=np.zeros(tables[-1], dtype=np.float32),
        scale=scale.astype(np.float32),
        base=float(base),
        floor=guide_table(alpha * scale * base),
        alpha=alpha,
        without=without.astype(np.float32),
    )
    parallel.run(fill, [(alpha, a, b, *rows[:8]) for a, b in parallel.shares(starts, threads)], threads)
    return rows


def _table_starts(starts: I64, K: int) -> I64:
    """Return where tables start; they are at most half full, or have a slot for every topic."""
    length = np.diff(starts)
    slots = 2 ** np.ceil(np.log2(np.clip(2 * length, 1, K))).astype(np.int64)
    return np.concatenate(([0], np.cumsum(np.where(length > SHORT, slots, 0))))


@kernel
def fill(
    alpha: F64,
    first: int,
    last: int,
    starts: I64,
    topics: U16,
    mass: F32,
    upto: F32,
    tables: I64,
    slot_topics: U16,
    slot_mass: F32,
    scale: F32,
) -> None:
    """Write the running sums and the tables of words first..last-1."""
    for w in range(first, last):
        total = 0.0
        for j in range(starts[w], starts[w + 1]):
            total += alpha[topics[j]] * scale[topics[j]] * mass[j]
            upto[j] = total
        table, mask = tables[w], tables[w + 1] - tables[w] - 1
        if mask >= 0:
            for j in range(starts[w], starts[w + 1]):
                s = (np.int64(topics[j]) * SCATTER) & mask
                while slot_mass[table + s] != 0.0:
                    s = (s + 1) & mask
                slot_topics[table + s] = topics[j]
                slot_mass[table + s] = mass[j]


@kernel
def _count_topics(columns: I64, by_word: U16, first: int, last: int, K: int, starts: I64) -> None:
    seen = np.full(K, -1, dtype=np.int64)
    for w in range(first, last):
        n = 0
        for j in range(columns[w], columns[w + 1]):
            n += seen[by_word[j]] != w
            seen[by_word[j]] = w
        starts[w + 1] = n


@kernel
def _count_block(
    columns: I64, by_word: U16, first: int, last: int, K: int, starts: I64, topics: U16, counts: F32
) -> None:
    cw = np.zeros(K, dtype=np.int32)
    for w in range(first, last):
        n = starts[w]
        for j in range(columns[w], columns[w + 1]):
            k = by_word[j]
            if cw[k] == 0:
                topics[n] = k
                n += 1
            cw[k] += 1
        for j in range(starts[w], starts[w + 1]):
            counts[j] = cw[topics[j]]
            cw[topics[j]] = 0
