"""Adam (Kingma and Ba 2015) on a network's weights.

If only some rows of the first layer have a gradient, the rows of absent words are updated lazily, when a batch holds
the word again (`kernels.neural.adam`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.kernels.neural import adam
from tertulia.models.neural.network import Network
from tertulia.models.neural.sparse import Rows, SlopesByName

_EPSILON = 1e-8
_WINDOW = 128  # steps after which all rows are updated, so that sums over past steps stay short


class Moments(NamedTuple):
    """Adam's moments of the gradients so far."""

    values: Array  # [2, n] first and second
    steps: int

    @classmethod
    def initial(cls, flat: Array) -> Moments:
        """Return the moments before the first step."""
        return cls(np.zeros((2, len(flat)), flat.dtype), 0)


class Rates(NamedTuple):
    """The coefficients of one step."""

    rate: float  # the learning rate, corrected for the first moment's start
    root: float  # the correction of the second moment's root
    betas: tuple[float, float]

    @classmethod
    def of(cls, step: int, learning_rate: float, betas: tuple[float, float]) -> Rates:
        """Compute the coefficients of a step, counted from 1."""
        beta1, beta2 = betas
        return cls(learning_rate / (1.0 - beta1**step), (1.0 - beta2**step) ** -0.5, betas)

    def array(self, times: float, like: Array) -> Array:
        """Return the array that kernels take; they multiply the gradient by `times`."""
        beta1, beta2 = self.betas
        return np.array((self.rate, self.root, 1.0 - beta1, 1.0 - beta2, _EPSILON, times), like.dtype)


def adam_step(
    flat: Array, gradient: Array, moments: Moments, learning_rate: float, betas: tuple[float, float]
) -> tuple[Array, Moments]:
    """Take one step on all weights; return new weights and moments."""
    moved, values, step = flat.copy(), moments.values.copy(), moments.steps + 1
    rates = Rates.of(step, learning_rate, betas).array(1.0, flat)
    adam.step(moved, values[0], values[1], gradient.astype(flat.dtype, copy=False), rates)
    return moved, Moments(values, step)


class Adam:
    """An optimiser that updates a network's flat weights in place."""

    def __init__(
        self, network: Network, flat: Array, learning_rate: float, betas: tuple[float, float],
        moments: Moments | None = None,
    ) -> None:  # fmt: skip
        known = moments or Moments.initial(flat)
        self._values, self._steps = known.values.copy(), known.steps
        self._learning_rate, self._betas = learning_rate, betas
        w, m, v = (network.named(array) for array in (flat, *self._values))
        self._parts = {name: (w[name], m[name], v[name]) for name in network.shapes}
        self._flat = {n: (w[n].reshape(-1), m[n].reshape(-1), v[n].reshape(-1)) for n in network.shapes}
        powers: F64 = np.array(betas)[:, None] ** np.arange(_WINDOW + 1.0)
        least = (_EPSILON**2) / np.finfo(flat.dtype).eps if min(betas) > 0 else np.inf
        self._past = adam.PastSteps(powers, np.zeros((2, _WINDOW)), np.zeros((2, _WINDOW + 1)), _EPSILON, float(least))
        self._now = 0  # steps since all rows were last updated
        self._seen = np.full(network.sizes.words, 0 if moments else -1)

    @property
    def moments(self) -> Moments:
        """The moments, for an optimiser that continues this one; call `finish` first."""
        return Moments(self._values, self._steps)

    def catch_up(self, rows: I64) -> None:
        """Apply the pending steps to the weights of some words."""
        if "words" in self._parts:
            adam.catch_up(*self._parts["words"], rows, self._seen, self._now, self._past)

    def finish(self) -> None:
        """Apply all pending steps."""
        self.catch_up(np.arange(len(self._seen)))
        self._seen[self._seen >= 0] = 0
        self._now, self._past.sums[:] = 0, 0.0

    def step(self, slopes: SlopesByName, times: float) -> None:
        """Take a step along slopes, multiplied by `times`; words with a slope must have no pending steps."""
        if self._now == _WINDOW:
            self.finish()
        rates = self._next_rates(times)
        for name, slope in slopes.items():
            if isinstance(slope, Rows):
                adam.step_rows(*self._parts[name], slope.places, slope.values, rates)
                self._seen[slope.places] = self._now
            else:
                adam.step(*self._flat[name], slope.reshape(-1), rates)
                if name == "words":
                    self._seen[:] = self._now  # no row has pending steps

    def _next_rates(self, times: float) -> Array:
        """Compute the coefficients of the next step, and record them for lazy updates."""
        self._steps += 1
        found, past, now = Rates.of(self._steps, self._learning_rate, self._betas), self._past, self._now
        past.steps[:, now] = found.rate, found.root
        if past.least < np.inf:
            decay1, decay2 = past.powers[:, now + 1 : 0 : -1]  # for steps since 0, 1, ..., now
            past.sums[0, : now + 1] += found.rate / found.root * decay1 / np.sqrt(decay2)
            past.sums[1, : now + 1] += _EPSILON * found.rate / found.root**2 * decay1 / decay2
        self._now += 1
        return found.array(times, self._values)
