"""LDA under seed words (`seeds`): a point estimate, as `kernels.lda.train` makes it without them.

The sampler is `kernels.lda.blocked`, which adds the counts of others to those of the documents. Here the others are the
prior's pseudo-tokens. The result is the mean over the last sweeps, without them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels import lda
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked, estimate, priors
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.lda.samplers import DENSE_CELLS
from tertulia.kernels.lda.starts import from_topics, n_general
from tertulia.methods.common.earlier_model import smooth
from tertulia.methods.common.seeds import Prior

_FEWEST = 20  # sweeps that are averaged, where training ends by itself
_START = 2**62  # no sweep has this number
Progress = Callable[[int, float], None]


class Documents(NamedTuple):
    """A corpus as kernels take it."""

    words: I32  # [N]
    documents: I64  # [D + 1]
    V: int


class Schedule(NamedTuple):
    """The length of training, what is learned on the way, and how it is run."""

    sweeps: int | None  # None: until it has settled
    learning: Learning
    most: int = estimate.MOST_SWEEPS
    threads: int = 1
    progress: Progress | None = None


def train(
    corpus: Documents, prior: Prior, alpha: F64, beta: float, key: int, schedule: Schedule, start: Array | None = None
) -> lda.LDAState:
    """Train from first topics that the seeds arrange, or from topics [K, V] whose first ones are the seeded ones."""
    K = len(alpha)
    if corpus.V * K > DENSE_CELLS:
        raise InputError(f"seeds with {corpus.V:,} words x {K} topics need too much memory: ask for fewer topics")
    others, threads = prior.beside(K), schedule.threads
    z = _first_topics(corpus, prior, alpha, beta, key, threads, start)
    counts = blocked.count(corpus.words, z, corpus.V, K, others=others)
    lengths, tokens = priors.length_histogram(corpus.documents), max(len(corpus.words), 1)
    trace: list[float] = []

    def sweep(average: blocked.Average) -> None:
        nonlocal alpha
        stream = derive(key, len(trace))
        found = blocked.sweep(*corpus[:2], z, counts, alpha, beta, stream, average, threads)
        trace.append(math.exp(-found.log_likelihood / tokens))
        if how := schedule.learning.alpha:
            seen = priors.Histograms(found.histogram, lengths)
            alpha = priors.fit_alpha(seen, alpha, symmetric=how == "symmetric", iterations=2)
        if schedule.progress is not None:
            schedule.progress(len(trace), trace[-1])

    while not _averages(schedule, trace):
        sweep(blocked.NO_AVERAGE)
    last = max(_FEWEST, len(trace) // 3) if schedule.sweeps is None else schedule.sweeps - len(trace)
    total = np.multiply(counts.cells.reshape(-1), np.float32(last)).astype(np.int32)
    for left in range(last, 0, -1):
        sweep(blocked.Average(total, left))
    own = counts.cells[:, :K].astype(np.int32) - others
    mean = total.reshape(counts.cells.shape)[:, :K].astype(np.float32) / np.float32(last) - others if last else None
    return lda.LDAState(z, own, own.sum(axis=0, dtype=np.int64), alpha, beta, mean)


def topic_word(state: lda.LDAState, prior: Prior) -> F64:
    """Compute the posterior mean of Phi [K, V] under the prior."""
    counts = state.cwk if state.mean is None else state.mean
    return smooth(counts.T + prior.counts(len(state.ck)), state.beta)


def _averages(schedule: Schedule, trace: list[float]) -> bool:
    """Tell whether the sweeps that follow are averaged: the last quarter, or all once training has settled."""
    if schedule.sweeps is not None:
        return len(trace) >= schedule.sweeps - max(1, schedule.sweeps // 4)
    return len(trace) + _FEWEST >= schedule.most or estimate.settled(trace)


def _first_topics(
    corpus: Documents, prior: Prior, alpha: F64, beta: float, key: int, threads: int, start: Array | None
) -> I32:
    K = len(alpha)
    how: lda.Start | Array = "clusters" if start is None else start
    given = lda.train(*corpus, K, alpha, beta, 0, key, start=how, threads=threads)
    if start is not None:
        return given.z
    first = prior.arrange(np.asarray(given.cwk.T, dtype=np.int64), K - n_general(K)) + prior.counts(K)
    return from_topics(*corpus[:2], smooth(first, beta), alpha, derive(key, _START), threads)
