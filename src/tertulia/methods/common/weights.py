"""How much a party may weigh by what it says about itself."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64


def bound_weights(weights: F64, most: float) -> F64:
    """The same weights, but none more than `most` times the median: whoever claims more gains nothing by it.

    >>> bound_weights(np.array([10.0, 12.0, 1e9]), 1.5)
    array([10., 12., 18.])
    """
    return np.minimum(weights, most * np.median(weights))
