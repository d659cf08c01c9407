"""The frequencies of words behind private reports: where no topics are asked for, and a prior where they are."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F32, F64, I32, I64, Array
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.noise_aware import Source, checked_documents, pieces


def unigram(source: Source, documents: Array, V: int, iterations: int = 50) -> F64:
    """The words' shares [V] that make the reports most likely, by expectation maximisation.

    `beta = c * share` with c about 300 is a good prior at small epsilon: topics are then near the unigram until the
    reports say otherwise. Shares are kept above 1e-3 / V.
    """
    documents, share = checked_documents(source, documents), np.full(V, 1 / V)
    for _ in range(iterations):
        counts = np.zeros(V)
        for base, r, first, last in pieces(source, documents, 0, len(documents) - 1):
            _expect(r.indptr, r.idx, r.a, r.r0, documents[first] - base, documents[last] - base, share, counts)
        share = np.maximum(counts / max(counts.sum(), 1e-300), 1e-3 / V)
        share /= share.sum()
    return share


@kernel
def _expect(indptr: I64, idx: I32, a: F32, r0: float, start: int, stop: int, share: F64, counts: F64) -> None:
    """Add the expected words of tokens start..stop-1, background left out."""
    for i in range(start, stop):
        total = r0
        for j in range(indptr[i], indptr[i + 1]):
            total += a[j] * share[idx[j]]
        for j in range(indptr[i], indptr[i + 1]):
            counts[idx[j]] += a[j] * share[idx[j]] / total
