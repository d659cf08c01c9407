"""The steps of online EM on one mini-batch, with all topics in play; see `epoch`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits
from tertulia.kernels.core.simd import add, dot, total
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.online_em.batch import Batch

_ITERATIONS = 4  # of the E-step
_LOW = np.uint64(2**21 - 1)
_WORDS = 512  # a block for one thread: fixed, for the order of sums


class Work(NamedTuple):
    """What the E-step leaves for the M-step."""

    theta: F32  # [documents, padded K] theta_dk / (C_k + V beta)
    pull: F32  # [pairs] a pair's count over its mass


def random_stats(tokens: I64, K: int, key: np.uint64, threads: int) -> tuple[F32, F64]:
    """Expected counts [V, padded K] that spread the tokens [V] of words over all topics, with noise; their sums."""
    V, starts = len(tokens), range(0, len(tokens), _WORDS)
    stats, sums = np.zeros((V, padded_width(K)), dtype=np.float32), np.zeros((len(starts), padded_width(K)))
    share = (tokens / K).astype(np.float32)
    jobs = [(share, K, key, start, min(start + _WORDS, V), stats, sums[b]) for b, start in enumerate(starts)]
    parallel.run(noise_block, jobs, threads)
    return stats, sums.sum(axis=0)


def normalise(stats: F32, base: float, inverse: F32, threads: int) -> None:
    """Turn expected counts [V, padded K] into phi, in place."""
    jobs = [(stats, np.float32(base), inverse, *some) for some in parallel.even(len(stats), threads)]
    parallel.run(_normalise, jobs, threads)


def room(K: int, documents: int, pairs: int) -> Work:
    """Room for batches of at most so many documents and pairs."""
    return Work(np.empty((documents, K), dtype=np.float32), np.empty(pairs, dtype=np.float32))


@kernel
def expect(
    batch: Batch, first: int, last: int, stats: F32, base: np.float32, inverse: F32, alpha: F32, work: Work
) -> None:
    """E-step of documents first..last-1, by length."""
    words, counts, offsets, pull = batch.words, batch.counts, batch.offsets, work.pull
    K = alpha.shape[0]
    gain = np.empty(K, dtype=np.float32)
    for d in batch.longest[first:last]:
        mine = work.theta[d]
        mine[:] = inverse
        for iteration in range(_ITERATIONS + 1):
            flat = base * total(mine)
            gain[:] = 0.0
            pulls = np.float32(0.0)
            for i in range(offsets[d], offsets[d + 1]):
                pull[i] = counts[i] / (dot(mine, stats, words[i]) + flat)
                pulls += pull[i]
                if iteration < _ITERATIONS:
                    add(gain, pull[i], stats, words[i])
            if iteration < _ITERATIONS:
                for k in range(K):
                    mine[k] = inverse[k] * (alpha[k] + mine[k] * (gain[k] + base * pulls))


@kernel
def maximise(
    batch: Batch, first: int, last: int, stats: F32, base: np.float32, weight: np.float32, work: Work, sums: F32
) -> None:
    """M-step of the batch's distinct words first..last-1: add to their stats, and to sums [K]."""
    words, owner, order, columns = batch.words, batch.owner, batch.order, batch.columns
    K = sums.shape[0]
    gain = np.empty(K, dtype=np.float32)
    for c in range(first, last):
        gain[:] = 0.0
        for j in range(columns[c], columns[c + 1]):
            add(gain, work.pull[order[j]], work.theta, np.int64(owner[order[j]]))
        row = stats[words[order[columns[c]]]]
        for k in range(K):
            more = weight * gain[k] * (row[k] + base)
            row[k] += more
            sums[k] += more


@kernel
def noise_block(share: F32, K: int, key: np.uint64, first: int, last: int, stats: F32, sums: F64) -> None:
    """Spread words first..last-1 over all topics, in shares ~ Gamma(3): -log of three uniform numbers of 21 bits each.

    Less noise leaves topics alike for too long, more of it is itself learned (measured from Gamma(0.2) to Gamma(10)).
    """
    for w in range(first, last):
        for k in range(K):
            x = bits(key, np.uint64(w * K + k))
            u = ((x & _LOW) + 0.5) * (((x >> np.uint64(21)) & _LOW) + 0.5) * (((x >> np.uint64(42)) & _LOW) + 0.5)
            stats[w, k] = share[w] * np.float32(math.log(u * 2.0**-63) / -3.0)
            sums[k] += stats[w, k]


@kernel
def _normalise(stats: F32, base: np.float32, inverse: F32, first: int, last: int) -> None:
    for w in range(first, last):
        for k in range(inverse.shape[0]):
            stats[w, k] = (stats[w, k] + base) * inverse[k]
