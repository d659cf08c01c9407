"""Tables of sums over documents, such as topic prevalence by month, with Gaussian noise on a grid.

Values are whole multiples of 2^-BITS, and noise is drawn exactly from the discrete Gaussian on the same grid: floating
point never meets what leaves (Mironov 2012). On a grid so fine the noise is charged as the continuous Gaussian. The two
differ by a factor of at most 1 + (z² + 1) / (24 s²) at z deviations, where s is the deviation in steps of the grid; so
over 10,000 cells, up to twelve deviations, epsilon differs by less than 2e-6 if s is at least 2^18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.mechanisms import WIDEST_SCALE, EventData, Mechanism, norm_between, whole_numbers

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

BITS = 20  # the grid: steps of 2^-20
STEP = 2.0**-BITS
FINEST = 2.0 ** (18 - BITS)  # the smallest sigma for which the grid is fine enough


@dataclass(frozen=True)
class NoisyTable(Mechanism):
    """Integers, in steps of the grid, plus discrete Gaussian noise of deviation `sigma`; sensitivity in the L2 norm.

    Rows (the last axis) whose noisy total is below `smallest` leave as zeros: that is computed from noisy numbers
    alone, so it costs nothing, whereas to look at the true total would show a single document.

    >>> NoisyTable("topic prevalence", sigma=4.0).charge()
    {'type': 'GaussianDpEvent', 'noise_multiplier': 4.0}
    """

    sigma: float = field(kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    smallest: float = field(default=0.0, kw_only=True)
    name: ClassVar[str] = "discrete-gaussian"

    def __post_init__(self) -> None:
        if not FINEST <= self.sigma <= STEP * WIDEST_SCALE / 2:
            raise ConfigError(
                f"sigma = {self.sigma}: noise must have a deviation from {FINEST} to {STEP * WIDEST_SCALE / 2:g}; "
                "choose another epsilon"
            )
        assumption = f"noise on a grid of 2^-{BITS} counts as Gaussian (epsilon differs by less than 1e-5)"
        object.__setattr__(self, "assumptions", (*self.assumptions, assumption))

    def charge(self) -> EventData:
        """Return one Gaussian event for the whole table: a document moves its cells together by the sensitivity."""
        return {"type": "GaussianDpEvent", "noise_multiplier": self.sigma / self.sensitivity}

    def params(self) -> dict[str, Any]:
        """Return the deviation, and the smallest total that leaves."""
        return {"sigma": self.sigma, "smallest": self.smallest}

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the L2 norm of the difference, off the grid."""
        return norm_between(one[0], other[0], 2) * STEP

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Add noise to the integers, as int64, and empty small rows."""
        steps = Fraction(self.sigma) * 2**BITS
        noisy = whole_numbers(x, self.what) + noise.gaussian(x.size, steps).reshape(x.shape)
        if self.smallest > 0:
            noisy = np.where(noisy.sum(axis=-1, keepdims=True) * STEP < self.smallest, 0, noisy)
        return noisy
