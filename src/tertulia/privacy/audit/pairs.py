"""Bounds from independent draws on two neighbouring inputs.

An event has probability p on the one and q on the other. At (epsilon, delta), p <= e^epsilon q + delta; at mu-GDP,
the normal quantiles of p and q differ by mu at most. The event, a score above or below a threshold, is chosen on one
half of the draws. On the other half, Clopper and Pearson's intervals (1934) bound p from below and q from above.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from tertulia._arrays import Array

Of = Literal["epsilon", "mu"]
_THRESHOLDS = 400  # that are tried on the first half


class Event(NamedTuple):
    """A score above (sign 1) or below (sign -1) a threshold, on the first input; on the second if `swapped`."""

    threshold: float
    sign: int
    swapped: bool

    def count(self, scores: Array) -> int:
        """Count the scores for which the event holds."""
        return int(np.count_nonzero(self.sign * scores > self.sign * self.threshold))


def lower(successes: int, trials: int, level: float) -> float:
    """Return a lower bound of a probability (Clopper-Pearson).

    >>> lower(100, 100, 0.05) == 0.05 ** (1 / 100)
    True
    """
    return 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, level))


def upper(successes: int, trials: int, level: float) -> float:
    """Return an upper bound of a probability (Clopper-Pearson)."""
    return 1.0 - lower(trials - successes, trials, level)


def epsilon_of_rates(p: float, q: float, delta: float) -> float:
    """Return the smallest epsilon at which p <= e^epsilon q + delta."""
    if p <= delta:
        return 0.0
    return max(0.0, math.log(p - delta) - math.log(q)) if q > 0 else math.inf


def mu_of_rates(p: float, q: float) -> float:
    """Return the smallest mu at which mu-GDP allows an event of probabilities p and q."""
    return max(0.0, float(ndtri(p) - ndtri(q)))


def bound(first: Array, second: Array, level: float, delta: float = 0.0, of: Of = "epsilon") -> float:
    """Return a lower bound of epsilon at delta, or of mu, from scores [n] and [m] of draws on two neighbours."""
    halves = (first[::2], second[::2]), (first[1::2], second[1::2])
    event = best_event(*halves[0], level, delta, of)
    return of_event(event, *halves[1], level, delta, of)


def of_event(event: Event, first: Array, second: Array, level: float, delta: float = 0.0, of: Of = "epsilon") -> float:
    """Return the bound that one event gives on draws by which it was not chosen."""
    hits = event.count(first), event.count(second)
    return _of_hits(hits, (len(first), len(second)), swapped=event.swapped, terms=(level, delta), of=of)


def _of_hits(
    hits: tuple[int, int], sizes: tuple[int, int], *, swapped: bool, terms: tuple[float, float], of: Of
) -> float:
    level, delta = terms
    one, other = (1, 0) if swapped else (0, 1)
    p, q = lower(hits[one], sizes[one], level / 2), upper(hits[other], sizes[other], level / 2)
    return mu_of_rates(p, q) if of == "mu" else epsilon_of_rates(p, q, delta)


def best_event(first: Array, second: Array, level: float, delta: float = 0.0, of: Of = "epsilon") -> Event:
    """Choose the event with the largest bound on these draws; where no bound is above 0, with the clearest rates."""
    values = np.unique(np.concatenate((first, second)))
    middles = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    thresholds = middles[np.unique(np.linspace(0, len(middles) - 1, _THRESHOLDS).astype(int))]
    sizes, best, found = (len(first), len(second)), Event(0.0, 1, swapped=False), (-1.0, -1.0)
    above = [len(own) - np.searchsorted(np.sort(own), thresholds, side="right") for own in (first, second)]
    for t, a, b in zip(thresholds, *above, strict=True):
        for sign, hits in ((1, (int(a), int(b))), (-1, (sizes[0] - int(a), sizes[1] - int(b)))):
            for swapped in (False, True):
                value = _of_hits(hits, sizes, swapped=swapped, terms=(level, delta), of=of)
                clear = _difference(hits, sizes) * (-1 if swapped else 1)
                if (value, clear) > found:
                    best, found = Event(float(t), sign, swapped), (value, clear)
    return best


def _difference(hits: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Return the difference of two rates, in standard errors."""
    p, q = hits[0] / sizes[0], hits[1] / sizes[1]
    pooled = sum(hits) / sum(sizes)
    return (p - q) / math.sqrt(max(pooled * (1 - pooled) * (1 / sizes[0] + 1 / sizes[1]), 1e-12))


def could_have_shown(draws: int, level: float, delta: float = 0.0, of: Of = "epsilon") -> float:
    """Return the bound from `draws` on each neighbour of an event that separates them perfectly."""
    half = draws // 2
    p, q = lower(half, half, level / 2), upper(0, half, level / 2)
    return mu_of_rates(p, q) if of == "mu" else epsilon_of_rates(p, q, delta)
