"""The server's optimisers, on flat arrays: W <- W - lambda G (gFedNTM, eq. 3), Adam in its place, and FedAdam."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tertulia._arrays import Array
from tertulia.federation.types import message

_EPSILON = 1e-8  # of Adam
_FEDADAM_BETA = 0.99  # of the second moment, as Reddi et al. have it in all their experiments


@message
class Moments:
    """What Adam remembers."""

    first: Array
    second: Array
    step: int


def at_rest(weights: Array) -> Moments:
    """Before the first step."""
    return Moments(np.zeros_like(weights), np.zeros_like(weights), 0)


def stepped(
    weights: Array,
    gradient: Array,
    moments: Moments,
    kind: Literal["sgd", "adam"],
    learning_rate: float,
    betas: tuple[float, float],
) -> tuple[Array, Moments]:
    """Take one step down the gradient; weights keep their precision."""
    if kind == "sgd":
        return (weights - learning_rate * gradient).astype(weights.dtype), moments  # (3)
    (b1, b2), t = betas, moments.step + 1
    first = (b1 * moments.first + (1.0 - b1) * gradient).astype(weights.dtype)
    second = (b2 * moments.second + (1.0 - b2) * gradient**2).astype(weights.dtype)
    rate = learning_rate / (1.0 - b1**t)
    moved = weights - rate * first / (np.sqrt(second / (1.0 - b2**t)) + _EPSILON)
    return moved.astype(weights.dtype), Moments(first, second, t)


def fedadam(
    weights: Array, change: Array, moments: Moments | None, rate: float, tau: float, momentum: float
) -> tuple[Array, Moments]:
    """One round of FedAdam (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2).

    The mean change of the parties' weights stands for a gradient. Unlike Adam there is no correction for the start:
    v begins at tau squared. A change much larger than tau moves a weight by about `rate`, whatever its size; a smaller
    one in proportion. `momentum` is beta_1.
    """
    b1, b2 = momentum, _FEDADAM_BETA
    known = moments or Moments(np.zeros_like(weights), np.full_like(weights, tau**2), 0)
    first = (b1 * known.first + (1.0 - b1) * change).astype(weights.dtype)
    second = (b2 * known.second + (1.0 - b2) * change**2).astype(weights.dtype)
    moved = weights + rate * first / (np.sqrt(second) + tau)
    return moved.astype(weights.dtype), Moments(first, second, known.step + 1)
