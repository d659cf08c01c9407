"""Adam (Kingma and Ba 2015, Algorithm 1): a step of all weights in one pass, and of a table's few rows with a gradient.

Without a gradient a row's moments decay, and its weights still move. The moves of the steps after its last gradient,

    w -= sum over i of  rate_i beta1^i m / (root_i sqrt(beta2^i v) + eps),

can wait until the row is needed. They are then two sums that are the same for all rows: 1 / (x + eps) is 1/x - eps/x^2
as long as (eps/x)^2 is lost in rounding beside 1. Otherwise steps are taken one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.kernels.core.jit import kernel, loose_kernel
from tertulia.kernels.core.simd import fetch_row

_AHEAD = 2  # rows that are on their way to the cache
# Rates [6] are the numbers of one step: the learning rate corrected for the first moment's start, the correction of the
# second's root, 1 - beta1, 1 - beta2, epsilon, and the factor of the gradient.


@loose_kernel
def step(weights: Array, first: Array, second: Array, gradient: Array, rates: Array) -> None:
    """Move weights [n] and both moments."""
    rate, root, fresh1, fresh2, eps, times = rates
    for i in range(weights.shape[0]):
        g = gradient[i] * times
        m = first[i] + fresh1 * (g - first[i])
        v = second[i] + fresh2 * (g * g - second[i])
        first[i], second[i] = m, v
        weights[i] -= rate * m / (np.sqrt(v) * root + eps)


@loose_kernel
def step_rows(weights: Array, first: Array, second: Array, rows: I64, gradient: Array, rates: Array) -> None:
    """Move some rows [U] of weights [V, H] and of both moments; the rows' gradient is [U, H]."""
    rate, root, fresh1, fresh2, eps, times = rates
    for i in range(rows.shape[0]):
        r = rows[i]
        _fetch(weights, first, second, rows, i + _AHEAD)
        for h in range(weights.shape[1]):
            g = gradient[i, h] * times
            m = first[r, h] + fresh1 * (g - first[r, h])
            v = second[r, h] + fresh2 * (g * g - second[r, h])
            first[r, h], second[r, h] = m, v
            weights[r, h] -= rate * m / (np.sqrt(v) * root + eps)


class PastSteps(NamedTuple):
    """The steps since some beginning, as rows that wait need them."""

    powers: F64  # [2, n + 1] of beta1 and beta2
    steps: F64  # [2, n] rate and root of each step
    sums: F64  # [2, n + 1] of the steps after each of them: of rate / root c^i, and of eps rate / root^2 d^i
    eps: float
    least: float  # of a second moment, for the sums to do


@loose_kernel
def catch_up(weights: Array, first: Array, second: Array, rows: I64, seen: I64, now: int, past: PastSteps) -> None:
    """Bring rows, last moved in step `seen` [V] (-1: never), to step `now`."""
    kind = weights.dtype.type
    least, one = kind(past.least), kind(1.0)
    for i in range(rows.shape[0]):
        r = rows[i]
        then = seen[r]
        _fetch(weights, first, second, rows, i + _AHEAD)
        if then < 0 or then == now:
            continue
        seen[r] = now
        few = 0
        decay1, decay2 = kind(past.powers[0, now - then]), kind(past.powers[1, now - then])
        for h in range(weights.shape[1]):
            few += second[r, h] * decay2 < least
        if few:
            _one_by_one(weights, first, second, r, then, now, past)
            continue
        sum1, sum2 = kind(past.sums[0, then]), kind(past.sums[1, then])
        for h in range(weights.shape[1]):
            inverse = one / np.sqrt(second[r, h])
            weights[r, h] -= first[r, h] * inverse * (sum1 - sum2 * inverse)
            first[r, h] *= decay1
            second[r, h] *= decay2


@kernel
def _fetch(weights: Array, first: Array, second: Array, rows: I64, i: int) -> None:
    if i < rows.shape[0]:
        fetch_row(weights, rows[i])
        fetch_row(first, rows[i])
        fetch_row(second, rows[i])


@loose_kernel
def _one_by_one(weights: Array, first: Array, second: Array, r: int, then: int, now: int, past: PastSteps) -> None:
    kind = weights.dtype.type
    beta1, beta2, eps = kind(past.powers[0, 1]), kind(past.powers[1, 1]), kind(past.eps)
    for s in range(then, now):
        rate, root = kind(past.steps[0, s]), kind(past.steps[1, s])
        for h in range(weights.shape[1]):
            first[r, h] *= beta1
            second[r, h] *= beta2
            weights[r, h] -= rate * first[r, h] / (np.sqrt(second[r, h]) * root + eps)
