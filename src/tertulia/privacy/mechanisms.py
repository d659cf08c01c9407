"""What may happen to an array on its way out of a party: pass in the clear, or be covered with integer noise.

A mechanism says what it releases, for which privacy unit, under which adjacency, and describes its privacy loss as
data (`charge`), which the ledger stores and the accountants of dp-accounting interpret (`event`). Noise is never added
to floats (Mironov 2012): clip, scale by a power of two, round, and only then release integers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.errors import ConfigError, InputError

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from tertulia.privacy.noise import NoiseStream

EventData = dict[str, Any]  # a dp-accounting event as JSON: {"type": class name, field: value, ...}
WIDEST_SCALE = 2**32  # beyond it too many draws would need slow exact arithmetic


class Unit(Enum):
    """Whose presence a guarantee hides, from the smallest to the largest."""

    TOKEN = "token"  # noqa: S105 (a privacy unit, no password)
    DOCUMENT = "document"
    USER = "user"
    PARTY = "party"


class Adjacency(Enum):
    """In what two neighbouring data sets differ."""

    SUBSTITUTE = "substitute"  # one unit becomes another
    ADD_REMOVE = "add-remove"  # one unit is there or is not
    NULL_REPLACE = "null-replace"  # one unit becomes empty, but keeps its place


class View(Enum):
    """Who sees a release."""

    SERVER = "server"
    PEERS = "peers"
    PUBLIC = "public"
    EAVESDROPPER = "eavesdropper"


@dataclass(frozen=True)
class Claim:
    """What a paper says that its mechanism guarantees, and where it says so."""

    epsilon: float
    delta: float
    source: str


@dataclass(frozen=True)
class Mechanism(ABC):
    """A way out of the party.

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

    name: ClassVar[str]
    local: ClassVar[bool] = False  # is each unit's report drawn from that unit alone, independently of all others?

    @abstractmethod
    def charge(self) -> EventData | None:
        """The privacy loss as data; None only for post-processing of what was released before."""

    @abstractmethod
    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """What leaves instead of `x`."""

    def params(self) -> dict[str, Any]:
        """The mechanism's own parameters, for the ledger."""
        return {}

    def event(self) -> DpEvent | None:
        """The privacy loss as a dp-accounting event (whose import takes a second or two)."""
        from tertulia.privacy.events import from_data

        data = self.charge()
        return None if data is None else from_data(data)


@dataclass(frozen=True)
class Clear(Mechanism):
    """The thing itself, unprotected: its real epsilon is infinite, whatever was claimed.

    >>> Clear("topic-word matrix", claimed=Claim(8.0, 0.0, "FTM sec. 3.1.1")).charge()
    {'type': 'NonPrivateDpEvent'}
    """

    name: ClassVar[str] = "clear"

    def charge(self) -> EventData:
        """No protection."""
        return {"type": "NonPrivateDpEvent"}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is."""
        return x


@dataclass(frozen=True)
class Public(Mechanism):
    """Something that the party's policy declares to be public: it costs nothing, under that assumption."""

    name: ClassVar[str] = "public"

    def __post_init__(self) -> None:
        object.__setattr__(self, "assumptions", (*self.assumptions, f"{self.what} is public"))

    def charge(self) -> EventData:
        """Nothing is lost that was not known."""
        return {"type": "NoOpDpEvent"}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is."""
        return x


@dataclass(frozen=True, eq=False)
class Derived(Mechanism):
    """Post-processing: computed from earlier releases alone, so it costs nothing new.

    `parents` are released arrays, or release ids; anything else is refused, for then raw data may be in it.
    """

    parents: tuple[Array | str, ...]
    name: ClassVar[str] = "derived"

    def charge(self) -> None:
        """Post-processing is free."""

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The array as it is."""
        return x


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
        _check_scale("epsilon", self.epsilon, self.sensitivity / self.epsilon if self.epsilon else math.inf)

    def charge(self) -> EventData:
        """One discrete Laplace event; a shift within one coordinate is the worst case of the L1 ball."""
        rate = self.epsilon / self.sensitivity
        return {"type": "DiscreteLaplaceDpEvent", "noise_parameter": rate, "sensitivity": int(self.sensitivity)}

    def params(self) -> dict[str, Any]:
        """The mechanism's epsilon."""
        return {"epsilon": self.epsilon}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The integers plus noise, as int64 (sums wrap modulo 2^64)."""
        rate = Fraction(self.epsilon) / int(self.sensitivity)
        return _integers(x, self.what) + noise.laplace(x.size, rate).reshape(x.shape)


@dataclass(frozen=True)
class DiscreteGaussian(Mechanism):
    """Integer noise P(k) ∝ exp(-k²/2sigma²), sensitivity in the L2 norm, drawn exactly.

    For vectors the noise is not rotation invariant, so the privacy loss of one coordinate does not bound that of all;
    rho = sensitivity²/2sigma² concentrated DP does, in any dimension (Canonne, Kamath, Steinke 2020, theorem 4).
    """

    sensitivity: float = field()
    sigma: float
    name: ClassVar[str] = "discrete-gaussian"

    def __post_init__(self) -> None:
        if not 0 < self.sensitivity < math.inf:
            raise ConfigError(f"sensitivity = {self.sensitivity}: give the largest L2 norm that one unit can have, > 0")
        _check_scale("sigma", self.sigma, self.sigma)

    def charge(self) -> EventData:
        """Zero-concentrated DP."""
        return {"type": "ZCDpEvent", "rho": (self.sensitivity / self.sigma) ** 2 / 2, "xi": 0.0}

    def params(self) -> dict[str, Any]:
        """The noise's scale."""
        return {"sigma": self.sigma}

    def apply(self, x: Array, noise: NoiseStream) -> Array:
        """The integers plus noise, as int64 (sums wrap modulo 2^64)."""
        return _integers(x, self.what) + noise.gaussian(x.size, Fraction(self.sigma) ** 2).reshape(x.shape)


def _check_scale(key: str, value: float, scale: float) -> None:
    if not 1 / WIDEST_SCALE <= scale <= WIDEST_SCALE:
        raise ConfigError(f"{key} = {value}: must be positive and give noise of a scale between 2**-32 and 2**32")


def _integers(x: Array, what: str) -> I64:
    if not np.issubdtype(x.dtype, np.integer):
        raise InputError(f"{what}: noise is only added to integers, not {x.dtype}; clip, scale by 2**b and round first")
    return x.astype(np.int64)
