"""The noise that an epsilon needs, found before a run by the accountant that totals ledgers."""

from __future__ import annotations

import math
from functools import lru_cache

from tertulia.errors import ConfigError
from tertulia.privacy.accounting import Loss, compose
from tertulia.privacy.mechanisms import Adjacency
from tertulia.privacy.sampled import Sampled, distribution_of, sampled_event, width_of

_PER_UNIT = 1000  # sigma is a multiple of a thousandth, so that all machines find the same
_LEAST, _MOST = math.log(0.25), math.log(1000.0)  # of sigma: less hides nothing, and more lets nothing be learned
_COARSE, _POINTS = 500, 20_000  # the grid of the search: steps of epsilon / 500 or 0.002


@lru_cache(maxsize=64)  # parties ask in every round, and each search takes a second or more
def noise_multiplier_for(epsilon: float, delta: float, rate: float, times: int) -> float:
    """Find a noise multiplier by which `times` sums over samples cost epsilon at most: a multiple of a thousandth.

    It is the least one but for a thousandth of itself. A coarse grid finds it, by halving brackets and interpolation,
    and the accountant that totals the ledger checks it.
    """
    from scipy.optimize import brentq

    finest = min(epsilon, 1.0) / _COARSE

    def excess(log_sigma: float) -> float:
        found = _rough_epsilon(Sampled(rate, math.exp(log_sigma)), times, delta, finest)
        return math.log(max(found, epsilon / 100) / epsilon)

    low, high = _LEAST, 0.0
    while excess(high) > 0:
        if high > _MOST:
            raise ConfigError(f"epsilon = {epsilon:g} is too small for {times} steps: no noise is enough")
        low, high = high, high + 1.5
    if low == _LEAST and excess(low) <= 0:
        return round(math.exp(low), 3)
    sigma = math.ceil(math.exp(brentq(excess, low, high, xtol=5e-4)) * _PER_UNIT)
    while _epsilon(sigma / _PER_UNIT, delta, rate, times) > epsilon:
        sigma += max(1, sigma // _PER_UNIT)
    return sigma / _PER_UNIT


def _rough_epsilon(sampled: Sampled, times: int, delta: float, finest: float) -> float:
    one = distribution_of(sampled, Adjacency.ADD_REMOVE, 1, max(finest, width_of(sampled, 1, times) / _POINTS))
    return float(one.self_compose(times).get_epsilon_for_delta(delta))


def _epsilon(sigma: float, delta: float, rate: float, times: int) -> float:
    event = sampled_event(rate, sigma)
    return compose([Loss(event, Adjacency.ADD_REMOVE, 1, times)], delta).epsilon
