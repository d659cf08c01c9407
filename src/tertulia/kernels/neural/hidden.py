"""Softplus layers between their matrix products, forward and backward."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import Array
from tertulia.kernels.core.exp import exp, softplus
from tertulia.kernels.core.jit import loose_kernel


@loose_kernel
def activate(values: Array, bias: Array) -> None:
    """Put softplus(values + bias) in the place of values [B, H]."""
    for d in range(values.shape[0]):
        for h in range(values.shape[1]):
            values[d, h] = softplus(values[d, h] + bias[h])


@loose_kernel
def back(slopes: Array, values: Array) -> Array:
    """Turn slopes [B, H] by softplus's values into those by what it was given; return their sums, the bias's [H].

    The slope of softplus is a sigmoid, and that 1 - exp(-softplus).
    """
    one, sums = slopes.dtype.type(1.0), np.zeros(slopes.shape[1], slopes.dtype)
    for d in range(slopes.shape[0]):
        for h in range(slopes.shape[1]):
            slope = slopes[d, h] * (one - exp(-values[d, h]))
            slopes[d, h] = slope
            sums[h] += slope
    return sums
