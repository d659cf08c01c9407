"""Gaussian noise on the word counts of semantic units, without drawing it for every word: PC-TD's (4), (5) and (10).

With N [S, W] the units' counts, noise Omega [S, W] of deviation sigma and L [W, K] = log p(w|z), responsibilities see
the noise only through Omega L, and the statistic only through Omega^T r. Let L = Q R with orthonormal columns of Q.
Then h = Omega Q is S x K normal numbers, Omega L = h R, and what Omega has outside of Q's columns is independent of h,
hence of r: its part in Omega^T r is normal with covariance (I - Q Q^T) for words and r^T r for topics. So

    r = softmax(log theta + N L + h R),    Omega^T r = Q h^T r + sigma (I - Q Q^T) Z F^T,    F F^T = r^T r,

with Z [W, K] standard normal, has the very law of the dense draw, by S K + W K numbers instead of S W. It holds where
Omega serves one E-step and its statistic, and nothing is released about single units.

Where only the words that a unit holds get noise, Omega is sparse, and `on_held_words` draws it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tertulia._arrays import F64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.pctd.em import SemanticUnits, log_shares, share_block, statistics

_CELLS = 1 << 24  # entries of Omega that the dense draw holds at a time, about
_ROWS = 2048  # units or words at a time: their rows stay in the cache
_ORTHONORMAL = 1e-11  # how far products of columns may be from 0 and 1


class NoisyStep(NamedTuple):
    """The results of an E-step over noisy counts."""

    r: F64  # [S, K] responsibilities
    statistic: F64  # [W, K] sum over units of noisy counts times responsibilities


def on_all_words(
    found: SemanticUnits, log_phi: F64, theta: F64, sigma: float, normal: Callable[[int], F64]
) -> NoisyStep:
    """Compute responsibilities and statistic of noisy counts; `normal(n)` gives the next n standard normal numbers."""
    S, (W, K) = len(found.bounds), log_phi.shape
    L, log_theta = freeze(log_phi, np.float64), log_shares(found, theta, K)
    Q, R = orthonormal(L)
    J = len(R)  # K, unless there are fewer words
    r, within, gram = np.empty((S, K)), np.zeros((J, K)), np.zeros((K, K))
    for first, last in parallel.cuts(found.documents, -(-S // _ROWS)):
        mine = slice(found.documents[first], found.documents[last])
        h = sigma * normal((mine.stop - mine.start) * J).reshape(-1, J)
        share_block(*found, first, last, L, log_theta, freeze(h @ R, np.float64), r, np.empty(S))
        within += h.T @ r[mine]
        gram += r[mine].T @ r[mine]
    variance, axes = np.linalg.eigh(gram)
    F = axes * np.sqrt(np.maximum(variance, 0.0))
    M = statistics(found, r, W)
    for first in range(0, W, _ROWS):
        rows = slice(first, min(first + _ROWS, W))
        outside = sigma * normal((rows.stop - rows.start) * K).reshape(-1, K) @ F.T
        M[rows] += outside
        within -= Q[rows].T @ outside
    M += Q @ within
    return NoisyStep(r, M)


def on_held_words(
    found: SemanticUnits, log_phi: F64, theta: F64, sigma: float, normal: Callable[[int], F64]
) -> NoisyStep:
    """Do the same with noise only on the counts of words that a unit holds, one number for each of these."""
    (D, S), (W, K) = found.shape, log_phi.shape
    L, log_theta = freeze(log_phi, np.float64), log_shares(found, theta, K)
    starts, lengths = found.bounds[:, 0], np.diff(found.bounds, axis=1)[:, 0]
    unit = np.repeat(np.arange(S), lengths)
    token = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
    cells = np.unique(unit * W + found.words[token])  # a word may come twice in a unit: that is one count
    Omega = csr_array((sigma * normal(len(cells)), (cells // W, cells % W)), (S, W))
    r = np.empty((S, K))
    share_block(*found, 0, D, L, log_theta, freeze(Omega @ L, np.float64), r, np.empty(S))
    return NoisyStep(r, statistics(found, r, W) + Omega.T @ r)


def orthonormal(L: F64) -> tuple[F64, F64]:
    """Return Q and R with L = Q R and orthonormal columns of Q.

    A pass or two of Cholesky's QR (Yamamoto et al. 2015) are several times as fast as Householder's, which stands in
    where L has (nearly) dependent columns.
    """
    Q, R, one = L, np.eye(L.shape[1]), np.eye(L.shape[1])
    try:
        for _ in range(3):
            products = Q.T @ Q
            if np.abs(products - one).max() < _ORTHONORMAL:
                return Q, R
            upper = np.linalg.cholesky(products).T
            Q, R = Q @ np.linalg.inv(upper), upper @ R
    except np.linalg.LinAlgError:
        pass
    Q, R = np.linalg.qr(L)
    return Q, R


def dense(found: SemanticUnits, log_phi: F64, theta: F64, sigma: float, normal: Callable[[int], F64]) -> NoisyStep:
    """Do the same by definition, one number for each word of each unit: slow, to check `on_all_words` against."""
    S, (W, K) = len(found.bounds), log_phi.shape
    L, log_theta = freeze(log_phi, np.float64), log_shares(found, theta, K)
    r, M = np.empty((S, K)), np.zeros((W, K))
    for first, last in parallel.cuts(found.documents, -(-S * W // _CELLS)):
        mine = slice(found.documents[first], found.documents[last])
        Omega = normal((mine.stop - mine.start) * W).reshape(-1, W)
        Omega *= sigma
        share_block(*found, first, last, L, log_theta, freeze(Omega @ L, np.float64), r, np.empty(S))
        M += Omega.T @ r[mine]
    return NoisyStep(r, M + statistics(found, r, W))
