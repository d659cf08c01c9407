"""Log Phi for the private samplers, [V, K]: noisy entries fall on words that a topic hardly has, so none may be -inf.

`phi.draw_phi` rounds variates that are lost in float32 to zero, which is right where phi itself is the weight. Here
the weight is its logarithm, and for beta = 0.01 a topic's rarest words lie a thousand nats down. So variates are drawn
and added up as logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F32, F64, I32, I64
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import bits, gamma, log_small_gamma

_WORDS = 512  # words in a block: fixed, so that the sums over blocks do not depend on the number of threads


def draw_log_phi(cwk: I32, beta: float, key: np.uint64, threads: int) -> F32:
    """Draw log Phi, Phi ~ Dirichlet(C + beta), topic by topic (7, 14), as normalised Gamma variates."""
    V, K = cwk.shape
    log_phi = np.empty((V, K), dtype=np.float32)
    starts = range(0, V, _WORDS)
    log_sums = np.empty((len(starts), K))
    jobs = [(cwk, beta, key, start, min(start + _WORDS, V), log_phi, log_sums[b]) for b, start in enumerate(starts)]
    parallel.run(log_gamma_block, jobs, threads)
    log_phi -= np.logaddexp.reduce(log_sums, axis=0).astype(np.float32)
    return log_phi


def mean_log_phi(cwk: I32, ck: I64, beta: float) -> F32:
    """Compute the log of Phi's posterior mean: an approximation if it replaces a draw (see `phi.mean_phi`).

    It is also what the word proposal is built from (20, 25).
    """
    log_phi: F32 = np.log(cwk + np.float32(beta), dtype=np.float32)
    log_phi -= np.log(ck + cwk.shape[0] * beta).astype(np.float32)
    return log_phi


@kernel
def log_gamma_block(cwk: I32, beta: float, key: np.uint64, start: int, stop: int, logs: F32, log_sums: F64) -> None:
    """Draw the logs of Gamma(C_wk + beta) variates of words start..stop-1, and the logs of their sums [K]."""
    K = cwk.shape[1]
    largest, sums = np.full(K, -np.inf), np.zeros(K)
    for w in range(start, stop):
        for k in range(K):
            shape, stream = cwk[w, k] + beta, bits(key, np.uint64(w * K + k))
            logs[w, k] = log_small_gamma(shape, stream) if shape < 1.0 else math.log(gamma(shape, stream))
            largest[k] = max(largest[k], logs[w, k])
    for w in range(start, stop):
        for k in range(K):
            sums[k] += math.exp(logs[w, k] - largest[k])
    for k in range(K):
        log_sums[k] = largest[k] + math.log(sums[k])
