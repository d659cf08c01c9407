"""Collapsed Gibbs sampling for LDA (Griffiths and Steyvers, PNAS 2004): the exact reference of every other sampler.

Tokens are visited in order and every draw sees all the others, so this sampler knows one thread only.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F64, I32, I64
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import uniform
from tertulia.kernels.core.scalars import first_above


@kernel
def sweep(words: I32, documents: I64, z: I32, cwk: I32, ck: I64, alpha: F64, beta: float, key: np.uint64) -> int:
    """Redraw every topic in place, z [N] with its counts cwk [V, K] and ck [K]; return how many changed."""
    V, K = cwk.shape
    cdk = np.zeros(K, dtype=np.int64)
    cumulative = np.empty(K)
    inverse = 1.0 / (ck + V * beta)
    changed = 0
    for d in range(documents.shape[0] - 1):
        start, stop = documents[d], documents[d + 1]
        for i in range(start, stop):
            cdk[z[i]] += 1
        for i in range(start, stop):
            w, old = words[i], z[i]
            cdk[old] -= 1
            cwk[w, old] -= 1
            ck[old] -= 1
            inverse[old] = 1.0 / (ck[old] + V * beta)
            total = 0.0
            for k in range(K):  # p(z_i = k | all else) ∝ (C_dk + alpha_k) (C_wk + beta) / (C_k + V beta)
                total += (cdk[k] + alpha[k]) * (cwk[w, k] + beta) * inverse[k]
                cumulative[k] = total
            new = first_above(cumulative, total * uniform(key, np.uint64(i)))
            cdk[new] += 1
            cwk[w, new] += 1
            ck[new] += 1
            inverse[new] = 1.0 / (ck[new] + V * beta)
            z[i] = new
            changed += new != old
        for i in range(start, stop):
            cdk[z[i]] = 0
    return changed


@kernel
def log_joint(words: I32, documents: I64, z: I32, alpha: F64, beta: float, V: int) -> float:
    """Compute the collapsed log p(w, z | alpha, beta), by the chain rule over tokens."""
    K = alpha.shape[0]
    cwk = np.zeros((V, K), dtype=np.int32)
    ck = np.zeros(K, dtype=np.int64)
    cdk = np.zeros(K, dtype=np.int64)
    total = 0.0
    for d in range(documents.shape[0] - 1):
        start, stop = documents[d], documents[d + 1]
        mass = alpha.sum()
        for i in range(start, stop):
            w, k = words[i], z[i]
            total += math.log((cdk[k] + alpha[k]) / mass * (cwk[w, k] + beta) / (ck[k] + V * beta))
            cdk[k] += 1
            cwk[w, k] += 1
            ck[k] += 1
            mass += 1.0
        for i in range(start, stop):
            cdk[z[i]] = 0
    return total
