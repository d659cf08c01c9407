"""Noisy counts of words in semantic units as the ledger sees them (PC-TD, eq. 4): charged for each question anew.

Where a word becomes empty but keeps its place, one count moves by 1. A word that is *deleted* moves all later n-grams
of its sentence, and words outside of the vocabulary are dropped before units are cut: where units end counts as public.
Topic shares stay at the party, but are computed from noisy counts alone; so is everything that leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tertulia.arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.gaussian import REPLACED, honest, theorem_epsilon
from tertulia.privacy.mechanisms import Adjacency, Claim, EventData, Mechanism, Unit

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

_DOCUMENT = 100  # words of the document whose cost is told as an example


@dataclass(frozen=True)
class NoisyUnits(Mechanism):
    """Gaussian noise of deviation `sigma` on every count of a word in a unit.

    `question` names what the noise depends on besides the party's key: the model, the shares and the units. Another
    question is other noise, and another charge.

    >>> NoisyUnits("counts", sigma=0.25).charge()
    {'type': 'GaussianDpEvent', 'noise_multiplier': 0.25}
    """

    sigma: float = field(kw_only=True)
    question: str = field(default="", kw_only=True)
    sensitivity: float = field(default=1.0, kw_only=True)
    unit: Unit = field(default=Unit.TOKEN, kw_only=True)
    adjacency: Adjacency = field(default=Adjacency.NULL_REPLACE, kw_only=True)
    name: ClassVar[str] = "noisy-units"

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ConfigError(f"sigma = {self.sigma}: noise needs a positive deviation, such as 0.25")
        if self.unit is not Unit.TOKEN or self.adjacency is Adjacency.ADD_REMOVE:
            raise ConfigError(
                f"unit = {self.unit.value}, adjacency = {self.adjacency.value}: noisy counts hide a token, by "
                "null-replace or substitute; a token more would move the units after it"
            )
        if self.adjacency is Adjacency.SUBSTITUTE:
            object.__setattr__(self, "sensitivity", REPLACED)
        object.__setattr__(self, "assumptions", (*self.assumptions, "where semantic units end is public",
                                                 "noise in floating point counts as exact"))  # fmt: skip

    def charge(self) -> EventData:
        """One Gaussian event."""
        return {"type": "GaussianDpEvent", "noise_multiplier": self.sigma / self.sensitivity}

    def params(self) -> dict[str, Any]:
        """The deviation, and the question."""
        return {"sigma": self.sigma, "question": self.question}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is: noise was added where it was computed."""
        return x


def paper_claim(sigma: float, rounds: int, delta: float) -> Claim:
    """What PC-TD's theorem promises for all rounds together."""
    return Claim(theorem_epsilon(sigma, rounds, delta), delta, "PC-TD theorem 1")


def other_levels(sigma: float, rounds: int, delta: float) -> str:
    """Say what the same noise costs for other neighbours than a word whose place becomes empty."""
    levels = honest(sigma, rounds, delta, _DOCUMENT)
    return (
        f"over {rounds} rounds at delta {delta:g}, a word replaced by another costs {levels.replaced:.4g}, "
        f"a document of {_DOCUMENT} words, none twice in a unit, {levels.document:.4g}"
    )
