"""Learned Dirichlet priors by Minka's fixed point ("Estimating a Dirichlet distribution", 2000, section 4).

Its digamma differences are finite sums, psi(n + a) - psi(a) = sum_{j<n} 1 / (a + j), so all it needs to know of the
documents is how many have so many tokens in topic k. That is a histogram of a fixed shape [K, COLUMNS], whatever the
documents are, so parties can add theirs up: counts to 64 have a column each, larger ones share eight per doubling, and
those beyond 2^16 the last. What is lost by sharing a column is below the noise of any learned alpha.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from tertulia._arrays import F64, I32, I64, Array
from tertulia.kernels.core.jit import freeze, kernel

U8 = NDArray[np.uint8]

_SMALLEST = 1e-6  # keeps a topic alive that holds no token now
_LARGEST = 1e6  # beyond this all documents look alike and the fixed point runs away
_SINGLE, _MOST, _PER_DOUBLING = 64, 2**16, 8


def _first_counts() -> I64:
    """The least count of each column, and one beyond the last."""
    doublings = np.arange(1, _PER_DOUBLING * 10 + 1) / _PER_DOUBLING  # from 64 to 2^16
    return np.concatenate((np.arange(1, _SINGLE + 2), np.rint(_SINGLE * 2.0**doublings).astype(np.int64) + 1))


_FIRST = _first_counts()
COLUMNS = len(_FIRST) - 1
_WIDTH = np.diff(_FIRST).astype(np.float64)
_MIDDLE = (_FIRST[:-1] + _FIRST[1:]) / 2.0 - 1.5  # of the j = count - 1 that a column stands for
_PASSED = (_WIDTH + 1.0) / (2.0 * _WIDTH)  # the share of its own column that a count has passed, on average
COLUMN_OF: U8 = freeze(
    np.searchsorted(_FIRST, np.arange(_MOST + 1), side="right") - 1, np.uint8
)  # of a count; 0 has none


class Histograms(NamedTuple):
    """How many documents have so many tokens of a topic, and so many in all."""

    topics: I64  # [K, COLUMNS]
    lengths: I64  # [COLUMNS]


def histograms(documents: I64, z: I32, K: int) -> Histograms:
    """Count documents by their tokens of each topic; documents without any are in no column."""
    topics, lengths = np.zeros((K, COLUMNS), dtype=np.int64), np.zeros(COLUMNS, dtype=np.int64)
    count_documents(documents, freeze(z, np.int32), COLUMN_OF, topics)
    sizes = np.minimum(np.diff(documents), _MOST)
    np.add.at(lengths, COLUMN_OF[sizes[sizes > 0]], 1)
    return Histograms(topics, lengths)


def fit_alpha(
    seen: Histograms, alpha: F64, symmetric: bool = False, iterations: int = 200, tolerance: float = 1e-5
) -> F64:
    """The alpha [K] that makes these counts most likely, from a first guess."""
    if symmetric:
        alpha = np.full_like(alpha, alpha.mean())
    topics, lengths = _passed(seen.topics), _passed(seen.lengths)
    for _ in range(iterations):
        gain = (topics / (alpha[:, None] + _MIDDLE)).sum(axis=1)
        cost = (lengths / (alpha.sum() + _MIDDLE)).sum()
        if cost == 0.0:
            return alpha  # no tokens, nothing to learn
        slope = gain.mean() if symmetric else gain
        step: F64 = np.clip(alpha * slope / cost, _SMALLEST, _LARGEST)
        if np.abs(step - alpha).max() <= tolerance * alpha.max():
            return step
        alpha = step
    return alpha


def learn_alpha(
    documents: I64, z: I32, alpha: F64, symmetric: bool = False, iterations: int = 200, tolerance: float = 1e-5
) -> F64:
    """The alpha [K] that makes the document-topic counts of z [N] most likely, from a first guess."""
    return fit_alpha(histograms(documents, z, len(alpha)), alpha, symmetric, iterations, tolerance)


def learn_beta(cwk: I32, ck: I64, beta: float, iterations: int = 200, tolerance: float = 1e-5) -> float:
    """The symmetric beta that makes the topic-word counts most likely, from a first guess."""
    V = cwk.shape[0]
    cells = np.bincount(cwk.ravel())
    more = cells[::-1].cumsum()[::-1][1:]  # cells with a count above j
    if more.size == 0:
        return beta
    j = np.arange(more.shape[0])
    for _ in range(iterations):
        cost = V * (digamma(ck + V * beta) - digamma(V * beta)).sum()
        step = float(np.clip(beta * (more / (beta + j)).sum() / cost, _SMALLEST, _LARGEST))
        if abs(step - beta) <= tolerance * beta:
            return step
        beta = step
    return beta


def _passed(histogram: Array) -> F64:
    """How many j < count the documents have passed in each column: all of a column below theirs, a share of theirs."""
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
