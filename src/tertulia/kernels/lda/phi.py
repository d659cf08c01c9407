"""Phi, the topics' word distributions, from counts: a draw from its posterior or the mean of it, word by word.

Both are float32 [V, padded K], one row per word, padded with topics of no mass to whole rows of lanes.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, gamma, log_small_gamma, uniform
from tertulia.kernels.core.vectors import padded_width

NO_TOTALS: F64 = np.empty(0)  # for a Phi that is a draw: no token's count is part of it
_WORDS = 512  # words in a block: fixed, so that the sums over blocks do not depend on the number of threads
_FAINT = -30.0  # log of a Gamma variate that is lost in float32 beside those of a topic with tokens


def draw_phi(cwk: I32, ck: I64, beta: float, key: np.uint64, threads: int) -> F32:
    """Draw Phi ~ Dirichlet(C + beta), topic by topic (FTM, equation 7), as normalised Gamma variates."""
    V, K = cwk.shape
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    starts = range(0, V, _WORDS)
    sums = np.empty((len(starts), K))
    jobs = [(cwk, beta, key, start, min(start + _WORDS, V), phi, sums[b]) for b, start in enumerate(starts)]
    parallel.run(gamma_block, jobs, threads)
    totals = sums.sum(axis=0)
    if beta < 1.0:
        for k in np.flatnonzero(ck == 0):
            totals[k] = empty_topic(beta, key, int(k), K, phi)
    phi[:, :K] *= (1.0 / totals).astype(np.float32)
    return phi


def mean_phi(cwk: I32, ck: I64, beta: float) -> F32:
    """Compute the posterior mean of Phi: an approximation if it replaces a draw.

    A sampler that leaves a token's own count out of it (see `mean_totals`) ends where collapsed Gibbs ends. Its tokens
    do not see how the others move within a sweep, so it does not target the exact posterior. It settles in fewer
    sweeps than with draws, which suits point estimates.
    """
    V, K = cwk.shape
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    fill_mean(cwk, np.float32(beta), (1.0 / (ck + V * beta)).astype(np.float32), phi)
    return phi


def mean_totals(ck: I64, smoothing: float) -> F64:
    """Compute C_k + sum beta [K], to leave a token's own count out of Phi's mean: (phi total - 1) / (total - 1)."""
    totals: F64 = np.add(ck, smoothing, dtype=np.float64)
    return totals


@kernel
def fill_mean(cwk: I32, beta: np.float32, inverse: F32, phi: F32) -> None:
    """Write (C_wk + beta) inverse_k into phi [V, padded K]."""
    for w in range(cwk.shape[0]):
        for k in range(inverse.shape[0]):
            phi[np.uintp(w), np.uintp(k)] = (np.float32(cwk[np.uintp(w), np.uintp(k)]) + beta) * inverse[np.uintp(k)]


@kernel
def gamma_block(cwk: I32, beta: float, key: np.uint64, start: int, stop: int, phi: F32, sums: F64) -> None:
    """Draw Gamma(C_wk + beta) variates of words start..stop-1, and their sums [K]; faint ones become 0, for speed."""
    K = cwk.shape[1]
    faint = math.exp(_FAINT * beta) / (1.0 + beta / math.e) if beta < 1.0 else 0.0  # see rng.log_small_gamma
    sums[:] = 0.0
    for w in range(start, stop):
        for k in range(K):
            stream = bits(key, np.uint64(w * K + k))
            if cwk[w, k] > 0 or uniform(stream, np.uint64(0)) > faint:
                g = gamma(cwk[w, k] + beta, stream)
                phi[w, k] = g
                sums[k] += g


@kernel
def empty_topic(beta: float, key: np.uint64, k: int, K: int, phi: F32) -> float:
    """Draw the variates of a topic without tokens, and their sum, relative to the largest: all may be tiny."""
    logs = np.empty(phi.shape[0])
    largest, total = -np.inf, 0.0
    for w in range(phi.shape[0]):
        logs[w] = log_small_gamma(beta, bits(key, np.uint64(w * K + k)))
        largest = max(largest, logs[w])
    for w in range(phi.shape[0]):
        phi[w, k] = math.exp(logs[w] - largest)
        total += phi[w, k]
    return total
