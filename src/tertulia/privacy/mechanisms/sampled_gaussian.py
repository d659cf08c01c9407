"""Shared Gaussian noise on a sum over a secret sample.

Each unit takes part by a coin of its own, which only its party knows (`Party.sample`). A reader who does not know the
coins learns less than from a sum over all units (`privacy.sampled`). `privacy.calibration` finds the noise that an
epsilon needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tertulia.errors import ConfigError
from tertulia.privacy.mechanisms import EventData
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.sampled import sampled_event


@dataclass(frozen=True)
class SampledGaussian(SharedGaussian):
    """Integers, in steps of 2^-bits, that only sampled units move, plus a share of Gaussian noise.

    >>> SampledGaussian("sum", sensitivity=1.0, sigma=4.0, bits=12, rate=0.1).charge()["sampling_probability"]
    0.1
    """

    rate: float = field(kw_only=True)  # with which a unit takes part
    name: ClassVar[str] = "sampled-gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate <= 1:
            raise ConfigError(f"a sampling rate of {self.rate:g} is no probability: give a number above 0, at most 1")
        if self.rate < 1:
            said = "which units take part in a sample is known to their party alone"
            object.__setattr__(self, "assumptions", (*self.assumptions, said))

    def charge(self) -> EventData:
        """Return Gaussian noise on a Poisson sample."""
        return sampled_event(self.rate, self.sigma / self.sensitivity)

    def params(self) -> dict[str, Any]:
        """Return those of the noise, and the rate."""
        return {**super().params(), "rate": self.rate}
