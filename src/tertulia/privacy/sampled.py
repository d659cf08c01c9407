"""Gaussian noise on a sum over a secret sample: which event it is, and its privacy loss distribution.

Each document takes part with probability q, by a coin of its own (Poisson sampling). A reader who does not know the
coins learns less than from the whole sum (privacy amplification; Abadi et al. 2016). dp-accounting has the worst pair
of distributions for one document that is there or is not, for one that becomes another, and for a mixture of shifts. k
documents of one user are such a mixture: as many of them take part as a binomial variable says, and the sum moves at
most that far (Choquette-Choo et al. 2024). In all other cases the coins count as known, which never costs less: given
the coins it is Gaussian noise, and distances of mixtures are no larger than those of their parts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from tertulia.privacy.mechanisms import Adjacency, EventData

SAMPLED = "PoissonSampledDpEvent"
_LARGEST = 50.0  # of an exponent, where only the order of magnitude counts
_WIDE = 500.0  # mixtures take twenty times as long, so their grid is ten times as coarse (epsilon moves by 1e-4)
_RAREST = 1e-30  # a probability of a number of documents below it is added to that of the next larger number


class Sampled(NamedTuple):
    """Gaussian noise on the sum over a sample."""

    rate: float  # q
    noise_multiplier: float


def sampled_or_none(event: EventData) -> Sampled | None:
    """Return rate and noise of an event that is Gaussian noise on a sample; None for any other.

    >>> sampled_or_none(sampled_event(0.1, 2.0))
    Sampled(rate=0.1, noise_multiplier=2.0)
    """
    within = event.get("event")
    if event["type"] != SAMPLED or not isinstance(within, dict) or within["type"] != "GaussianDpEvent":
        return None
    found = Sampled(float(event["sampling_probability"]), float(within["noise_multiplier"]))
    return found if 0 < found.rate <= 1 and found.noise_multiplier > 0 else None


def sampled_event(rate: float, noise_multiplier: float) -> EventData:
    """Return the event of Gaussian noise on a sample; without sampling (`rate` 1) that of the noise alone."""
    noise = {"type": "GaussianDpEvent", "noise_multiplier": noise_multiplier}
    return noise if rate == 1 else {"type": SAMPLED, "sampling_probability": rate, "event": noise}


def width_of(sampled: Sampled, group: int, count: int) -> float:
    """Estimate how far the privacy loss of `count` such events reaches, to choose a grid."""
    mu = group / sampled.noise_multiplier
    rho = min(mu**2 / 2, sampled.rate**2 * math.expm1(min(mu**2, _LARGEST)))
    single = math.log1p(sampled.rate * math.expm1(min(8 * mu, _LARGEST)))
    return max(count * rho + 20 * math.sqrt(count * rho) + single, 0.0 if group == 1 else _WIDE)


@lru_cache(maxsize=32)  # a run asks for the same noise after each of its rounds
def distribution_of(sampled: Sampled, adjacency: Adjacency, group: int, interval: float) -> Any:
    """Return the privacy loss distribution of one such event.

    With adjacency `ADD_REMOVE`, a neighbour has `group` documents more or less; with `SUBSTITUTE` and a group of 2, one
    document becomes another.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    rate, sigma = sampled
    grid = {"value_discretization_interval": interval}
    if group == 1:
        return pld.from_gaussian_mechanism(sigma, sampling_prob=rate, **grid)
    if adjacency is Adjacency.ADD_REMOVE and rate < 1:
        return pld.from_mixture_gaussian_mechanism(sigma, *_shifts(rate, group), **grid)
    if adjacency is Adjacency.SUBSTITUTE and group == 2:
        relation = NeighboringRelation.REPLACE_ONE
        return pld.from_gaussian_mechanism(sigma, sampling_prob=rate, neighboring_relation=relation, **grid)
    return pld.from_gaussian_mechanism(sigma / group, **grid)


def _shifts(rate: float, group: int) -> tuple[list[int], list[float]]:
    """Return how many of a group's documents take part, and the probability of each number."""
    shifts, chances, rare = list[int](), list[float](), 0.0
    for n in range(group + 1):
        chance = rare + math.exp(_log_choose(group, n) + n * math.log(rate) + (group - n) * math.log1p(-rate))
        if chance < _RAREST and n < group:
            rare = chance
            continue
        shifts, chances, rare = [*shifts, n], [*chances, chance], 0.0
    total = math.fsum(chances)
    return shifts, [chance / total for chance in chances]


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
