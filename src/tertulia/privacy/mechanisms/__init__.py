"""Mechanisms by which an array leaves a party: as it is, or with noise.

A mechanism says what it releases, for which privacy unit, under which adjacency, and describes its privacy loss as
data (`charge`), which the ledger stores and the accountants of dp-accounting interpret.

Noise comes in by one of two ways. `DiscreteLaplace`, and `NoisyTable` with Gaussian noise, add it to the integers that
leave; never to floats (Mironov 2012): clip, scale by a power of two, round, and only then release. With a `Randomiser`
the step draws its noise first, and all that is computed from it leaves as `Derived`.

This module holds what any method may need; the other modules of the package are families for one paper each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.errors import ConfigError, InputError, Unreleased
from tertulia.privacy.assumptions import declare_public

if TYPE_CHECKING:
    from tertulia.privacy.noise import NoiseStream

EventData = dict[str, Any]  # a dp-accounting event as JSON: {"type": class name, field: value, ...}
WIDEST_SCALE = 2**32  # beyond it too many draws would need slow exact arithmetic


class Unit(Enum):
    """The privacy unit, whose presence a guarantee hides, from the smallest to the largest."""

    TOKEN = "token"  # noqa: S105 (a privacy unit, no password)
    DOCUMENT = "document"
    USER = "user"
    PARTY = "party"


class Adjacency(Enum):
    """The difference between two neighbouring data sets."""

    SUBSTITUTE = "substitute"  # one unit becomes another
    ADD_REMOVE = "add-remove"  # one unit is there or is not
    NULL_REPLACE = "null-replace"  # one unit becomes empty, but keeps its place


@dataclass(frozen=True)
class Claim:
    """A guarantee that a paper claims for its mechanism, and the place of the claim."""

    epsilon: float
    delta: float
    source: str


@dataclass(frozen=True)
class Mechanism(ABC):
    """A way by which an array leaves the party.

    `what` names the thing released in human words; `sensitivity` is how far one unit can move it (infinite where
    nothing bounds it); `metric` marks scores, which a party's policy may keep at home.
    """

    what: str
    _: KW_ONLY
    sensitivity: float = math.inf
    unit: Unit = Unit.DOCUMENT
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    claimed: Claim | None = None
    assumptions: tuple[str, ...] = ()
    metric: bool = False
    documents_per_user: int | None = None  # as how many a user counts, where a step sees to it; None: as many as it has

    name: ClassVar[str]
    local: ClassVar[bool] = False  # is each unit's report drawn from that unit alone, independently of all others?
    grows: ClassVar[bool] = False  # does the input have a number for each of the party's own words?
    own_params: ClassVar[frozenset[str]] = frozenset()  # parameters that name the data, so that noise depends on these

    @abstractmethod
    def charge(self) -> EventData | None:
        """Return the privacy loss as data; None only for post-processing of what was released before."""

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Return what leaves in place of `x`: by most mechanisms the array itself."""
        return x

    def params(self) -> dict[str, Any]:
        """Return the mechanism's own parameters, for the ledger."""
        return {}

    def with_shares(self, shares: int) -> Self:
        """Return the mechanism where that many parties add its noise together, if its noise can be shared."""
        return self

    @property
    def reach(self) -> float:
        """The farthest that one unit may move the input, in the measure of `distance`."""
        return self.sensitivity

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return how far two inputs are apart, in the norm and scale of `reach`; infinite where nothing may differ.

        The input of a release is one array; that of a `Randomiser` is what its noise is drawn from.
        """
        return 0.0 if all_equal(one, other) else math.inf


def all_equal(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Return whether arrays are equal, bit for bit, with their types and shapes."""
    pairs = list(zip(one, other, strict=False))
    same = all((a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes() for a, b in pairs)
    return same and len(one) == len(other)


def norm_between(one: Array, other: Array, order: int) -> float:
    """Return the norm of a difference: L1 or L2; infinite if the shapes differ."""
    if one.shape != other.shape:
        return math.inf
    return float(np.linalg.norm(np.subtract(one, other, dtype=np.float64).reshape(-1), order))


@dataclass(frozen=True)
class Clear(Mechanism):
    """The thing itself, unprotected: its real epsilon is infinite, regardless of any claim.

    >>> Clear("topic-word matrix", claimed=Claim(8.0, 0.0, "FTM sec. 3.1.1")).charge()
    {'type': 'NonPrivateDpEvent'}
    """

    name: ClassVar[str] = "clear"

    def charge(self) -> EventData:
        """Return an event without protection."""
        return {"type": "NonPrivateDpEvent"}


@dataclass(frozen=True)
class Public(Mechanism):
    """Something that the party's policy declares to be public: it costs nothing, under that assumption."""

    name: ClassVar[str] = "public"

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumptions", (*self.assumptions, declare_public(self.what)))

    @property
    def reach(self) -> float:
        """No data may move it."""
        return 0.0

    def charge(self) -> EventData:
        """Return an event without a loss."""
        return {"type": "NoOpDpEvent"}


@dataclass(frozen=True, eq=False)
class Derived(Mechanism):
    """Post-processing: computed from earlier releases alone, so it costs nothing new.

    `parents` are released arrays, or release ids; anything else is refused, for then raw data may be in it.
    """

    parents: tuple[Array | str, ...]
    name: ClassVar[str] = "derived"

    @property
    def reach(self) -> float:
        """No data may move it but by its parents."""
        return 0.0

    def charge(self) -> None:
        """Charge nothing: post-processing is free."""


class Randomiser(Mechanism):
    """Noise that a step draws itself, from the key that `party.randomise` gives when it has charged for it.

    What is computed from such noise alone leaves as `Derived` from the charge; it is no way out by itself.
    """

    by_document: ClassVar[bool] = False  # is each report drawn from a token of one document, once and for all?

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Refuse: no noise was drawn for `x`."""
        raise Unreleased(f"'{self.what}' by {self.name} is no way out: use `party.randomise`, and then `Derived`")


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Integer noise P(k) ∝ exp(-|k| epsilon / sensitivity), sensitivity in the L1 norm: epsilon-DP, drawn exactly.

    >>> DiscreteLaplace("counts", sensitivity=2, epsilon=1.0).charge()
    {'type': 'DiscreteLaplaceDpEvent', 'noise_parameter': 0.5, 'sensitivity': 2}
    """

    sensitivity: int = field()  # no default, unlike in the base
    epsilon: float
    name: ClassVar[str] = "discrete-laplace"

    def __post_init__(self) -> None:
        if self.sensitivity != int(self.sensitivity) or self.sensitivity < 1:
            raise ConfigError(f"sensitivity = {self.sensitivity}: integer arrays move by whole numbers; give 1, 2, ...")
        if not 1 / WIDEST_SCALE <= (self.sensitivity / self.epsilon if self.epsilon else math.inf) <= WIDEST_SCALE:
            raise ConfigError(
                f"epsilon = {self.epsilon}: must be positive and give noise of a scale between 2**-32 and 2**32"
            )

    def charge(self) -> EventData:
        """Return one discrete Laplace event; a shift within one coordinate is the worst case of the L1 ball."""
        rate = self.epsilon / self.sensitivity
        return {"type": "DiscreteLaplaceDpEvent", "noise_parameter": rate, "sensitivity": int(self.sensitivity)}

    def params(self) -> dict[str, Any]:
        """Return the mechanism's epsilon."""
        return {"epsilon": self.epsilon}

    def distance(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the L1 norm of the difference."""
        return norm_between(one[0], other[0], 1)

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """Add noise to the integers, as int64 (sums wrap modulo 2^64)."""
        rate = Fraction(self.epsilon) / int(self.sensitivity)
        return whole_numbers(x, self.what) + noise.laplace(x.size, rate).reshape(x.shape)


def whole_numbers(x: Array, what: str) -> I64:
    """Convert the array to int64; raise `InputError` if it does not hold integers."""
    if not np.issubdtype(x.dtype, np.integer):
        raise InputError(f"{what}: noise is only added to integers, not {x.dtype}; clip, scale by 2**b and round first")
    return x.astype(np.int64)
