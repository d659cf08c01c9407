"""Gaussian noise that several parties add together, on a grid: the noise of their sum is as large as one party's alone.

Under secure sums nobody sees the reply of a single party, so no single reply needs all the noise. Each party adds
discrete Gaussian noise of variance sigma² / shares. A sum that can be unmasked holds the replies of at least `shares`
parties that keep their noise to themselves (`Party.noise_shares`), so its noise has at least the variance sigma².
Without secure sums `shares` is 1, and each party adds all of it.

Values are integers in steps of 2^-bits, and the noise is drawn exactly on the same grid, because floating-point noise
reveals what it was added to (Mironov 2012). The noise is charged as the continuous Gaussian of variance sigma². A
discrete Gaussian of s steps, and a sum of several, have the moment generating function of the continuous one but for a
factor of 1 +- 2 exp(-2 pi² s²) per cell (Poisson summation; Canonne, Kamath, Steinke 2020; Kairouz, Liu, Steinke 2021).
That is below 10^-70000 for the smallest s that is allowed, 2^7 steps. What remains is that losses lie on a lattice,
which moves epsilon by a part of 1 / s².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tertulia._arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.mechanisms import WIDEST_SCALE, EventData, Mechanism, norm_between, whole_numbers

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

LEAST_STEPS = 2**7  # of a share's deviation, in steps of the grid


@dataclass(frozen=True)
class SharedGaussian(Mechanism):
    """Integers, in steps of 2^-bits, plus this party's share of Gaussian noise of deviation `sigma` in all.

    `sensitivity` is in the L2 norm, in the unit of `sigma`. The caller sees to it that no unit moves the integers
    further than that, also after rounding.

    >>> SharedGaussian("counts", sensitivity=1.0, sigma=4.0, bits=12).charge()
    {'type': 'GaussianDpEvent', 'noise_multiplier': 4.0}
    """

    sensitivity: float = field()  # no default, unlike in the base
    sigma: float = field(kw_only=True)
    bits: int = field(kw_only=True)
    shares: int = field(default=1, kw_only=True)
    name: ClassVar[str] = "shared-gaussian"

    def __post_init__(self) -> None:
        if self.shares < 1 or not LEAST_STEPS <= float(self._steps) <= WIDEST_SCALE / 2:
            raise ConfigError(
                f"sigma = {self.sigma:g} in {self.shares} shares: a share must have a deviation from {LEAST_STEPS} to "
                f"{WIDEST_SCALE / 2:g} steps of 2^-{self.bits}; choose another epsilon"
            )
        said = [f"noise on a grid of 2^-{self.bits} counts as Gaussian (epsilon differs by less than 1e-3 of itself)"]
        if self.shares > 1:
            said.append(f"every sum holds the noise of at least {self.shares} parties that keep theirs secret")
        object.__setattr__(self, "assumptions", tuple(dict.fromkeys((*self.assumptions, *said))))

    @property
    def _steps(self) -> Fraction:
        """The deviation of this party's share, in steps of the grid; rounded up, so that there is no less noise."""
        return Fraction(math.ceil(self.sigma * 2**self.bits / math.sqrt(self.shares) * 2**10), 2**10)

    def charge(self) -> EventData:
        """Return one Gaussian event: a unit moves all numbers together by the sensitivity.

        Its multiplier has twelve digits: those of sigma and sensitivity that share a factor, such as a clip, are equal.
        """
        return {"type": "GaussianDpEvent", "noise_multiplier": float(f"{self.sigma / self.sensitivity:.12g}")}

    def params(self) -> dict[str, Any]:
        """Return the deviation of the whole noise, the number of shares, and the grid."""
        return {"sigma": self.sigma, "shares": self.shares, "bits": self.bits}

    def with_shares(self, shares: int) -> Self:
        """Return the mechanism with this number of shares."""
        return replace(self, shares=shares)

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the L2 norm of the difference, off the grid."""
        return math.ldexp(norm_between(one[0], other[0], 2), -self.bits)

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Add this party's share of the noise, as int64."""
        return whole_numbers(x, self.what) + noise.gaussian(x.size, self._steps).reshape(x.shape)
