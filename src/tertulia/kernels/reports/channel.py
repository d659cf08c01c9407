"""Channels from words to private reports, and their constants for compiled code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.special import bdtr, bdtrc

from tertulia._arrays import F32, U64
from tertulia.errors import ConfigError

Kind = Literal["laplace", "krr", "subset"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_LARGEST = 40.0  # e^epsilon stays well within float32


@dataclass(frozen=True)
class Channel:
    """A channel from words to reports. `epsilon` is for one token: by substitution, but for one entry of Laplace noise.

    Another word moves two entries of a one-hot vector, so that Laplace noise costs twice its epsilon by substitution.

    >>> Channel("subset", 6.0, V=2949).m
    7
    """

    kind: Kind
    epsilon: float
    V: int
    tau: float = 0.2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"channel = {self.kind!r}: choose one of {', '.join(KINDS)}")
        if not 0 < self.epsilon <= _LARGEST:
            raise ConfigError(f"epsilon = {self.epsilon}: it must be positive, and {_LARGEST:g} at most")
        if not 2 <= self.V < 2**31:
            raise ConfigError(f"V = {self.V}: a channel needs 2 to 2**31 - 1 words to choose from")
        if not 0 <= self.tau < 1:
            raise ConfigError(f"tau = {self.tau}: it must be at least 0 and below 1, the word's own entry")

    @property
    def m(self) -> int:
        """Words named by subset selection; one of them is k-ary randomised response."""
        return max(1, round(self.V / (math.exp(self.epsilon) + 1))) if self.kind == "subset" else 1

    @property
    def grid(self) -> float:
        """The grid of Laplace noise, a power of two: the likelihood ratio moves by e^(1/256) a step at most."""
        return 2.0 ** -max(12, 9 + math.ceil(math.log2(self.epsilon)))

    @property
    def threshold(self) -> float:
        """Tau as a multiple of the grid."""
        return math.floor(self.tau / self.grid) * self.grid

    def background(self) -> float:
        """Return r0: the likelihood ratio of a word that the report does not name."""
        if self.kind != "laplace":
            return 1.0
        tau, epsilon = self.threshold, self.epsilon
        return 0.5 * math.exp(-epsilon * (1 - tau)) / (1 - 0.5 * math.exp(-epsilon * tau))

    def expected_support(self) -> float:
        """Return how many words a report names, on average."""
        if self.kind != "laplace":
            return float(self.m)
        other, own = (0.5 * math.exp(-self.epsilon * x) for x in (self.threshold, 1 - self.threshold))
        return (self.V - 1) * other + 1 - own

    def own_word_probability(self) -> float:
        """Return the probability that a token's own word is among those named."""
        if self.kind == "laplace":
            return 1 - 0.5 * math.exp(-self.epsilon * (1 - self.threshold))
        return 1 / (1 + (self.V - self.m) / (self.m * math.exp(self.epsilon)))


class Noise(NamedTuple):
    """The constants of a channel for compiled code."""

    thresholds: U64  # of 64 random bits: [V] of the number of other words (Laplace); [1] of naming the own word
    ratio: F32  # a_j of grid cells lowest, lowest + 1, ...; the last one serves all beyond
    lowest: int  # the cell of tau
    one: int  # the cell of 1
    rate: float  # cells per unit of an exponential of mean 1; 0: no values are drawn
    origin: float  # the value of cell 0
    grid: float


@lru_cache(maxsize=16)
def constants(channel: Channel) -> Noise:
    """Compute the constants of a channel, once."""
    if channel.kind != "laplace":
        context = Context(prec=60)
        odds = channel.m * context.exp(Decimal(channel.epsilon))
        own = int(context.divide(odds, context.add(odds, channel.V - channel.m)) * 2**64)  # rounded down: epsilon holds
        ratio = np.array([math.expm1(channel.epsilon)], dtype=np.float32)
        return Noise(np.array([min(own, 2**64 - 1)], dtype=np.uint64), ratio, 0, 0, 0.0, 1.0, 0.0)
    grid, epsilon = channel.grid, channel.epsilon
    one, lowest = round(1 / grid), round(channel.threshold / grid)
    n, p = channel.V - 1, 0.5 * math.exp(-epsilon * channel.threshold)
    k = np.arange(channel.V)
    below, above = bdtr(k, n, p) * 2.0**64, bdtrc(k, n, p) * 2.0**64  # each is precise where it is small
    thresholds = np.where(below < above, below, 0).astype(np.uint64)
    upper = np.uint64(2**64 - 1) - np.where(below < above, 0, above).astype(np.uint64)
    thresholds = np.where(below < above, thresholds, upper)
    middle = (np.arange(lowest, one + 1) + 0.5) * grid  # the ratio of two cells' masses is that at their middle
    ratio = np.exp(epsilon * (2 * np.minimum(middle, 1.0) - 1)) - channel.background()
    return Noise(thresholds, ratio.astype(np.float32), lowest, one, 1 / (epsilon * grid), grid / 2, grid)
