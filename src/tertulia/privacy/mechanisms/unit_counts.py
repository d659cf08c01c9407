"""Noisy counts of words in semantic units as the ledger sees them (PC-TD, eq. 4): each question is a new charge.

Where a word becomes empty but keeps its place, one count moves by 1. A word that is *deleted* moves all later n-grams
of its sentence: where units end counts as public. Words off the list keep their places, so that it is no word's doing.
Topic shares stay at the party, but are computed from noisy counts alone; so is everything that leaves.

Noise on the words that a unit *holds* alone guarantees nothing: a count of exactly 0 says that the word is not there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import ConfigError
from tertulia.privacy.assumptions import declare_public
from tertulia.privacy.mechanisms import Adjacency, Claim, EventData, Randomiser, Unit, all_equal
from tertulia.privacy.mechanisms.gaussian import REPLACED, real_levels, theorem_epsilon

_DOCUMENT = 100  # words of the document whose cost is given as an example


@dataclass(frozen=True)
class NoisyUnits(Randomiser):
    """Gaussian noise of deviation `sigma` on every count of a word in a unit, or with `held` on those above 0 alone.

    `question` names what the noise depends on besides the party's key: the model, the shares and the units. Another
    question is other noise, and another charge.

    >>> NoisyUnits("counts", sigma=0.25).charge()
    {'type': 'GaussianDpEvent', 'noise_multiplier': 0.25}
    >>> NoisyUnits("counts", sigma=0.25, held=True).charge()
    {'type': 'NonPrivateDpEvent'}
    """

    sigma: float = field(kw_only=True)
    held: bool = field(default=False, kw_only=True)
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
        if self.held:
            object.__setattr__(self, "sensitivity", math.inf)
        own = (declare_public("where semantic units end"), "noise in floating point counts as exact")
        object.__setattr__(self, "assumptions", (*self.assumptions, *own))

    def charge(self) -> EventData:
        """Return one Gaussian event, or no protection."""
        if self.held:
            return {"type": "NonPrivateDpEvent"}
        return {"type": "GaussianDpEvent", "noise_multiplier": self.sigma / self.sensitivity}

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the L2 norm of the difference of counts [S, V]; a word off the list has none.

        Inputs are the words of tokens, units' first and last tokens, documents' units, and the size V of the list.
        """
        (words, bounds, _, V), (others, *_) = one, other
        if len(words) != len(others) or not all_equal(one[1:], other[1:]):
            return math.inf
        token = np.flatnonzero(words != others)
        unit = np.searchsorted(bounds[:, 0], token, side="right") - 1
        moved: Counter[tuple[int, int]] = Counter()
        for u, old, new in zip(unit.tolist(), words[token].tolist(), others[token].tolist(), strict=True):
            moved[u, old] -= 1
            moved[u, new] += 1
        return math.sqrt(sum(n * n for (_, word), n in moved.items() if word < int(V)))

    def params(self) -> dict[str, Any]:
        """Return the deviation, which counts it is added to, and the question."""
        return {"sigma": self.sigma, "held": self.held, "question": self.question}


def pctd_claim(sigma: float, rounds: int, delta: float) -> Claim:
    """Return what PC-TD's theorem promises for all rounds together."""
    return Claim(theorem_epsilon(sigma, rounds, delta), delta, "PC-TD theorem 1")


HELD = "a word that a unit does not hold has no noise: its count of exactly 0 shows, whatever sigma is"


def other_levels(sigma: float, rounds: int, delta: float) -> str:
    """Say what the same noise costs for other neighbours than a word whose place becomes empty."""
    levels = real_levels(sigma, rounds, delta, _DOCUMENT)
    return (
        f"over {rounds} rounds at delta {delta:g}, a word replaced by another costs {levels.replaced:.4g}, "
        f"a document of {_DOCUMENT} words, none twice in a unit, {levels.document:.4g}"
    )
