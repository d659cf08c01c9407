"""Adam on a network's weights. Words that a batch lacks wait for their steps until a batch holds them again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.kernels.neural import adam
from tertulia.models.neural.network import Network
from tertulia.models.neural.sparse import Rows, Slopes

_EPSILON = 1e-8
_WINDOW = 128  # steps after which all rows are brought up to date, so that sums over the past stay short


class Moments(NamedTuple):
    """What Adam knows of the gradients so far."""

    first: Array  # flat
    second: Array
    steps: int


class Adam:
    """Moves a network's flat weights in place (Kingma and Ba 2015)."""

    def __init__(
        self, network: Network, flat: Array, learning_rate: float, betas: tuple[float, float],
        moments: Moments | None = None,
    ) -> None:  # fmt: skip
        known = moments or Moments(np.zeros_like(flat), np.zeros_like(flat), 0)
        self.first, self.second, self.steps = known.first.copy(), known.second.copy(), known.steps
        self.learning_rate, self.betas, self.kind = learning_rate, betas, flat.dtype.type
        w, m, v = (network.named(array) for array in (flat, self.first, self.second))
        self.parts = {name: (w[name], m[name], v[name]) for name in network.shapes}
        self.flat = {n: (w[n].reshape(-1), m[n].reshape(-1), v[n].reshape(-1)) for n in network.shapes}
        powers: F64 = np.array(betas)[:, None] ** np.arange(_WINDOW + 1.0)
        least = (_EPSILON**2) / np.finfo(flat.dtype).eps if min(betas) > 0 else np.inf
        self.past = adam.Past(powers, np.zeros((2, _WINDOW)), np.zeros((2, _WINDOW + 1)), _EPSILON, float(least))
        self.now = 0  # steps since all rows were up to date
        self.seen = np.full(network.sizes.words, 0 if moments else -1)

    @property
    def moments(self) -> Moments:
        """The moments, for another to go on from; all weights must be up to date."""
        return Moments(self.first, self.second, self.steps)

    def ready(self, rows: I64) -> None:
        """Bring the weights of some words up to date."""
        if "words" in self.parts:
            adam.catch_up(*self.parts["words"], rows, self.seen, self.now, self.past)

    def finish(self) -> None:
        """Bring all weights up to date."""
        self.ready(np.arange(len(self.seen)))
        self.seen[self.seen >= 0] = 0
        self.now, self.past.sums[:] = 0, 0.0

    def step(self, slopes: Slopes, times: float) -> None:
        """Move the weights along slopes, to be multiplied by `times`; words with one must be up to date."""
        if self.now == _WINDOW:
            self.finish()
        rates = self._rates(times)
        for name, slope in slopes.items():
            if isinstance(slope, Rows):
                adam.step_rows(*self.parts[name], slope.places, slope.values, rates)
                self.seen[slope.places] = self.now
            else:
                adam.step(*self.flat[name], slope.reshape(-1), rates)
                if name == "words":
                    self.seen[:] = self.now  # none waits

    def _rates(self, times: float) -> Array:
        """The numbers of the next step, which also become part of the past."""
        self.steps += 1
        beta1, beta2 = self.betas
        rate, root = self.learning_rate / (1.0 - beta1**self.steps), (1.0 - beta2**self.steps) ** -0.5
        past, now = self.past, self.now
        past.steps[:, now] = rate, root
        if past.least < np.inf:
            decay1, decay2 = past.powers[:, now + 1 : 0 : -1]  # for steps since 0, 1, ..., now
            past.sums[0, : now + 1] += rate / root * decay1 / np.sqrt(decay2)
            past.sums[1, : now + 1] += _EPSILON * rate / root**2 * decay1 / decay2
        self.now += 1
        numbers = (rate, root, 1.0 - beta1, 1.0 - beta2, _EPSILON, times)
        return np.array(numbers, self.kind)
