"""The M-step's statistic under a bound: no document moves it by more than a constant, in the Frobenius norm.

What a document adds is a function of its own units' responsibilities (`em.document_statistic`). It is scaled down to
the clip norm where it is larger, then each number is truncated towards zero to a multiple of 2^-bits. Truncation makes
no number larger, so the bound holds for the integers, too. Sums of integers are exact, in any order.
"""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.pctd.em import SemanticUnits, document_statistic

_SAFE = 1 - 2.0**-30  # norms are computed in float64: rounding must not lift one above its clip


def clipped_statistics(found: SemanticUnits, r: Array, V: int, clip: float, bits: int) -> I64:
    """Sum expected counts of words in topics [V, K] over documents, in steps of 2^-bits; each is clipped to `clip`.

    `r` [S, K] are the units' responsibilities.
    """
    if r.ndim != 2 or len(r) != found.shape[1]:
        raise InputError(f"r has shape {r.shape}: a row for each of {found.shape[1]} units is needed")
    if not (math.isfinite(clip) and clip > 0):
        raise InputError(f"clip = {clip}: it must be positive")
    total = np.zeros((V, r.shape[1]), np.int64)
    r = freeze(r, np.float64)
    _add_documents(found.words, found.bounds, found.documents, r, clip * _SAFE, float(2**bits), total)
    return total


@kernel
def _add_documents(
    words: I32, bounds: I64, documents: I64, r: F64, clip: float, unit: float, total: I64
) -> None:  # fmt: skip
    V, K = total.shape
    place = np.full(V, -1, dtype=np.int64)
    mine, table = np.empty(64, dtype=np.int64), np.empty((64, K))
    for d in range(documents.shape[0] - 1):
        first, last = documents[d], documents[d + 1]
        if first == last:
            continue
        most = min(V, bounds[last - 1, 1] - bounds[first, 0])  # rows of the table
        if most > mine.shape[0]:
            mine, table = np.empty(most, dtype=np.int64), np.empty((most, K))
        n = document_statistic(words, bounds, first, last, r, place, mine, table)
        square = 0.0
        for j in range(n):
            for k in range(K):
                square += table[j, k] * table[j, k]
        scale = unit * min(1.0, clip / np.sqrt(square)) if 0.0 < square < np.inf else 0.0
        for j in range(n):
            for k in range(K):
                total[mine[j], k] += np.int64(table[j, k] * scale)  # truncates
