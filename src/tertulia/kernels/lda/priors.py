"""Learned Dirichlet priors by Minka's fixed point ("Estimating a Dirichlet distribution", 2000, section 4).

Its digamma differences are finite sums, psi(n + a) - psi(a) = sum_{j<n} 1 / (a + j). So it needs only a histogram: for
every topic, how many documents have n tokens of it. The histogram has a fixed shape [K, COLUMNS], so parties can add
theirs up. Counts to 64 have a column each, larger ones share eight columns per doubling, and those beyond 2^16 share
the last. The error of shared columns is below the noise of any learned alpha.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from tertulia._arrays import F32, F64, I32, I64, U8, Array
from tertulia.kernels.core.jit import freeze, kernel

_SMALLEST = 1e-6  # keeps a topic alive that holds no token now
_LARGEST = 1e6
_RATE = 1.0  # of an exponential prior of both: many documents outweigh it, but a single one has no best alpha
_SINGLE, _MOST, _PER_DOUBLING = 64, 2**16, 8


def _first_counts() -> I64:
    """Return the least count of each column, and one beyond the last."""
    doublings = np.arange(1, _PER_DOUBLING * 10 + 1) / _PER_DOUBLING  # from 64 to 2^16
    return np.concatenate((np.arange(1, _SINGLE + 2), np.rint(_SINGLE * 2.0**doublings).astype(np.int64) + 1))


_FIRST = _first_counts()
COLUMNS = len(_FIRST) - 1
_WIDTH = np.diff(_FIRST).astype(np.float64)
_MIDDLE = (_FIRST[:-1] + _FIRST[1:]) / 2.0 - 1.5  # of the j = count - 1 that a column stands for
_PASSED = (_WIDTH + 1.0) / (2.0 * _WIDTH)  # the share of its own column that a count has passed, on average
# The column of a count; 0 has none.
COLUMN_OF: U8 = freeze(np.searchsorted(_FIRST, np.arange(_MOST + 1), side="right") - 1, np.uint8)


class Histograms(NamedTuple):
    """The number of documents by their tokens of each topic, and by their tokens in all."""

    topics: I64  # [K, COLUMNS]
    lengths: I64  # [COLUMNS]


def histograms(documents: I64, z: I32, K: int) -> Histograms:
    """Count documents by their tokens of each topic; documents without any are in no column."""
    topics = np.zeros((K, COLUMNS), dtype=np.int64)
    count_documents(documents, freeze(z, np.int32), COLUMN_OF, topics)
    return Histograms(topics, length_histogram(documents))


def fit_alpha(
    seen: Histograms, alpha: F64, symmetric: bool = False, iterations: int = 200, tolerance: float = 1e-5
) -> F64:
    """Find the alpha [K] that makes these counts most likely, from a first guess."""
    if symmetric:
        alpha = np.full_like(alpha, alpha.mean())
    topics, lengths = _passed(seen.topics), _passed(seen.lengths)
    for _ in range(iterations):
        gain = (topics / (alpha[:, None] + _MIDDLE)).sum(axis=1)
        cost = (lengths / (alpha.sum() + _MIDDLE)).sum()
        if cost == 0.0:
            return alpha  # no tokens, nothing to learn
        slope = gain.mean() if symmetric else gain
        step: F64 = np.clip(alpha * slope / (cost + _RATE), _SMALLEST, _LARGEST)
        if np.abs(step - alpha).max() <= tolerance * alpha.max():
            return step
        alpha = step
    return alpha


def learn_alpha(
    documents: I64, z: I32, alpha: F64, symmetric: bool = False, iterations: int = 200, tolerance: float = 1e-5
) -> F64:
    """Find the alpha [K] that makes the document-topic counts of z [N] most likely, from a first guess."""
    return fit_alpha(histograms(documents, z, len(alpha)), alpha, symmetric, iterations, tolerance)


def length_histogram(documents: I64) -> I64:
    """Count documents by their number of tokens [COLUMNS]; those without any are in no column."""
    lengths = np.zeros(COLUMNS, dtype=np.int64)
    sizes = np.minimum(np.diff(documents), _MOST)
    np.add.at(lengths, COLUMN_OF[sizes[sizes > 0]], 1)
    return lengths


def learn_beta(cwk: I32, ck: I64, beta: float) -> float:
    """Find the symmetric beta that makes the topic-word counts [V, K] most likely, from a first guess."""
    return fit_beta(cell_histogram(cwk.astype(np.float32)), ck, len(cwk), beta)


def fit_beta(cells: I64, ck: I64, V: int, beta: float, iterations: int = 200, tolerance: float = 1e-5) -> float:
    """Find the same from the number of counts of each size [COLUMNS], and the counts of topics [K]."""
    passed = _passed(cells)
    if not cells.any():
        return beta
    for _ in range(iterations):
        cost = V * (digamma(ck + V * beta) - digamma(V * beta)).sum()
        step = float(np.clip(beta * (passed / (beta + _MIDDLE)).sum() / (cost + _RATE), _SMALLEST, _LARGEST))
        if abs(step - beta) <= tolerance * beta:
            return step
        beta = step
    return beta


def cell_histogram(cells: F32) -> I64:
    """Count the counts [V, any K] of each size [COLUMNS]; zeros are in no column."""
    found = np.zeros(COLUMNS, dtype=np.int64)
    count_cells(np.ascontiguousarray(cells).reshape(-1), COLUMN_OF, found)
    return found


def _passed(histogram: Array) -> F64:
    """Count the j < count that documents passed in each column: all of columns below theirs, a share of theirs."""
    beyond = histogram[..., ::-1].cumsum(axis=-1)[..., ::-1] - histogram
    passed: F64 = _WIDTH * (beyond + _PASSED * histogram)
    return passed


@kernel
def count_documents(documents: I64, z: I32, column_of: U8, topics: I64) -> None:
    """Add every document's topics to the histogram [K, COLUMNS]."""
    cdk = np.zeros(topics.shape[0], dtype=np.int64)
    most = column_of.shape[0] - 1
    for d in range(documents.shape[0] - 1):
        for i in range(documents[d], documents[d + 1]):
            cdk[z[i]] += 1
        for i in range(documents[d], documents[d + 1]):
            count = cdk[z[i]]
            if count > 0:
                topics[z[i], column_of[min(count, most)]] += 1
                cdk[z[i]] = 0


@kernel
def count_cells(cells: F32, column_of: U8, found: I64) -> None:
    """Add every count to the histogram [COLUMNS]."""
    most = column_of.shape[0] - 1
    for i in range(cells.shape[0]):
        if cells[i] > 0.0:
            found[column_of[min(np.int64(cells[i]), most)]] += 1
