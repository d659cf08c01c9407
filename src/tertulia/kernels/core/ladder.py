"""Draws from K fixed weights in constant expected time: running sums, and a guide that says where to start the climb.

Chen and Asau, "On generating random variates from an empirical distribution" (AIIE Transactions 6, 1974). As fast as an
alias table and exact, with the sums left to see.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I32
from tertulia.kernels.core.jit import lean_kernel
from tertulia.kernels.core.scalars import smaller


class Ladder(NamedTuple):
    """Weights as running sums."""

    upto: F64  # [K] the sum of weights 0..k
    guide: I32  # [K] the item at share j / K of the whole


def ladder(weights: F64) -> Ladder:
    """The ladder of weights [K], none negative.

    >>> climb(*ladder(np.array([1.0, 0.0, 3.0])), 0.25)
    2
    """
    K = weights.shape[0]
    upto = np.cumsum(weights)
    guide = np.searchsorted(upto, upto[-1] * np.arange(K) / K, "right").clip(max=K - 1)
    return Ladder(upto, guide.astype(np.int32))


@lean_kernel
def climb(upto: F64, guide: I32, u: float) -> int:
    """The item at share u of the whole, u in [0, 1)."""
    K = upto.shape[0]
    goal = u * upto[K - 1]
    k = int(guide[smaller(int(u * K), K - 1)])
    while k > 0 and upto[k - 1] > goal:  # only if rounding put the guide one too high
        k -= 1
    while k < K - 1 and upto[k] <= goal:
        k += 1
    return k
