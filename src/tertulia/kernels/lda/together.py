"""Sweeps over one party's documents while the counts of all others stand still (AD-LDA, Newman et al., JMLR 2009).

Phi is the posterior mean given everybody's counts: those of the others as last heard, and one's own as they move. It
is fixed within a sweep, as in `dense`, with the same approximation (see `phi.mean_phi`).
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I32, I64
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import dense
from tertulia.kernels.lda.phi import mean_phi


def run(
    words: I32, documents: I64, z: I32, others: I32, alpha: F64, beta: float, sweeps: int, key: int, threads: int = 1
) -> tuple[I32, I32]:
    """Sweep from topics z [N] beside the others' counts [V, K]; return the new topics and one's own counts [V, K]."""
    z = np.array(z, dtype=np.int32)
    V, K = others.shape
    everyone: I32 = others + dense.counts(words, z, V, K, threads)
    ck = everyone.sum(axis=0, dtype=np.int64)
    for s in range(sweeps):
        phi = mean_phi(everyone, ck, beta, threads)
        dense.sweep(words, documents, z, phi, alpha, derive(key, s), everyone, ck, threads)
    return z, everyone - others
