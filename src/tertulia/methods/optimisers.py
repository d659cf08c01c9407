"""The server's optimisers, on flat arrays: W <- W - lambda G (gFedNTM, eq. 3), or Adam in its place."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tertulia.arrays import Array
from tertulia.federation.types import message


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
    eps: float = 1e-8,
) -> tuple[Array, Moments]:
    """Take one step down the gradient; weights keep their precision."""
    if kind == "sgd":
        return (weights - learning_rate * gradient).astype(weights.dtype), moments  # (3)
    (b1, b2), t = betas, moments.step + 1
    first = (b1 * moments.first + (1.0 - b1) * gradient).astype(weights.dtype)
    second = (b2 * moments.second + (1.0 - b2) * gradient**2).astype(weights.dtype)
    rate = learning_rate / (1.0 - b1**t)
    moved = weights - rate * first / (np.sqrt(second / (1.0 - b2**t)) + eps)
    return moved.astype(weights.dtype), Moments(first, second, t)
