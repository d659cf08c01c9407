"""Guide tables: draws from K fixed weights in constant expected time, by running sums and a start for the search.

Chen and Asau, "On generating random variates from an empirical distribution" (AIIE Transactions 6, 1974). A guide table
is as fast as an alias table, and exact. Its running sums also serve callers that draw from a part of the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32
from tertulia.kernels.core.jit import lean_kernel
from tertulia.kernels.core.scalars import smaller


class GuideTable(NamedTuple):
    """Running sums of weights, and where a search in them starts."""

    upto: F64  # [K] the sum of weights 0..k
    guide: I32  # [K] the item at share j / K of the whole


def guide_table(weights: F64) -> GuideTable:
    """Build the table of weights [K], none negative.

    >>> search(*guide_table(np.array([1.0, 0.0, 3.0])), 0.25)
    2
    """
    K = weights.shape[0]
    upto = np.cumsum(weights)
    guide = np.searchsorted(upto, upto[-1] * np.arange(K) / K, "right").clip(max=K - 1)
    return GuideTable(upto, guide.astype(np.int32))


@lean_kernel
def search(upto: F64, guide: I32, u: float) -> int:
    """Find the item at share u of the whole, u in [0, 1)."""
    K = upto.shape[0]
    goal = u * upto[K - 1]
    k = int(guide[smaller(int(u * K), K - 1)])
    while k > 0 and upto[k - 1] > goal:  # only if rounding put the guide one too high
        k -= 1
    while k < K - 1 and upto[k] <= goal:
        k += 1
    return k
