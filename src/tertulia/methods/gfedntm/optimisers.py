"""The server's optimisers, on flat arrays: W <- W - lambda G (gFedNTM, eq. 3), Adam in its place, and FedAdam."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import Array
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models.neural.optimiser import Moments, adam_step

_FEDADAM_BETA = 0.99  # of the second moment, as Reddi et al. have it in all their experiments


def descend(config: GFedNTMSettings, weights: Array, gradient: Array, moments: Moments) -> tuple[Array, Array]:
    """Take one step down the gradient: new weights, of the same precision, and Adam's new moments [2, n]."""
    if config.optimiser == "sgd":
        return (weights - config.learning_rate * gradient).astype(weights.dtype), moments.values  # (3)
    moved, after = adam_step(weights, gradient, moments, config.learning_rate, config.betas)
    return moved, after.values


def fedadam(
    weights: Array, change: Array, moments: Array | None, rate: float, tau: float, momentum: float
) -> tuple[Array, Array]:
    """One round of FedAdam (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2).

    The mean change of the parties' weights stands for a gradient. Unlike Adam there is no correction for the start:
    v begins at tau squared. A change much larger than tau moves a weight by about `rate`, whatever its size; a smaller
    one in proportion. `momentum` is beta_1. New weights, and moments [2, n].
    """
    b1, b2 = momentum, _FEDADAM_BETA
    first, second = (np.zeros_like(weights), np.full_like(weights, tau**2)) if moments is None else moments
    first = (b1 * first + (1.0 - b1) * change).astype(weights.dtype)
    second = (b2 * second + (1.0 - b2) * change**2).astype(weights.dtype)
    moved = weights + rate * first / (np.sqrt(second) + tau)
    return moved.astype(weights.dtype), np.stack((first, second))
