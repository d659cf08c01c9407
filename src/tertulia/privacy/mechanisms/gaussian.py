"""The cost of Gaussian noise that is drawn in each of T rounds: exactly, by the moments accountant, and as claimed.

Noise of deviation sigma on numbers that one neighbour moves by `shift` (in the L2 norm), T times, is mu-GDP with
mu = shift sqrt(T) / sigma (Dong, Roth, Su 2022). Its exact epsilon is Balle and Wang's (2018, theorem 8), computed by
dp-accounting; a PLD comes to the same by composition. PC-TD reckons with log moments (Abadi et al. 2016), which give a
little more, and then states a theorem, whose proof bounds lambda (lambda + 1) / 2 by lambda squared: true from
lambda = 1 on only.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from tertulia.errors import ConfigError

REPLACED = math.sqrt(2)  # a word replaced by another moves two counts by 1


class Levels(NamedTuple):
    """The real epsilon of one and the same noise, for three kinds of neighbours."""

    token: float  # a word is there, or its place is empty
    replaced: float  # a word becomes another
    document: float  # all of a document's words vanish, and their places stay


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest epsilon for which mu-GDP is (epsilon, delta)-DP.

    >>> round(epsilon_of(1.5315, 1e-6), 2)
    8.0
    """
    from dp_accounting import get_epsilon_gaussian

    _check_delta(delta)
    return float(get_epsilon_gaussian(1 / mu, delta)) if mu > 0 else 0.0


def sigma_for(epsilon: float, delta: float, rounds: int, shift: float = 1.0) -> float:
    """Return the noise that makes T rounds together cost epsilon.

    >>> round(sigma_for(8.0, 1e-6, rounds=35), 2)
    3.86
    """
    from dp_accounting import get_sigma_gaussian

    _check_delta(delta)
    if not epsilon > 0:
        raise ConfigError(f"epsilon = {epsilon}: it must be positive")
    return shift * math.sqrt(rounds) * float(get_sigma_gaussian(epsilon, delta))


@lru_cache  # parties ask for the same in every round, and dp-accounting takes milliseconds
def real_levels(sigma: float, rounds: int, delta: float, tokens: int, repeats: int = 1) -> Levels:
    """Compute exactly what T rounds cost; for a document of `tokens` words, with one up to `repeats` times in a unit.

    >>> real_levels(0.25, rounds=35, delta=1e-6, tokens=400)._replace(document=0).token.__round__()
    392
    """
    mu = math.sqrt(rounds) / sigma
    shifts = (1.0, REPLACED, math.sqrt(tokens * repeats))
    return Levels(*(epsilon_of(mu * shift, delta) for shift in shifts))


def moments_epsilon(sigma: float, rounds: int, delta: float, shift: float = 1.0) -> float:
    """Compute epsilon by the moments accountant, (15)-(17) of PC-TD, at the best lambda.

    That is the smallest (alpha(lambda) - ln delta) / lambda, where alpha(lambda) = mu^2 lambda (lambda + 1) / 2.

    >>> round(moments_epsilon(0.25, 35, 1e-6))
    404
    """
    _check_delta(delta)
    mu = shift * math.sqrt(rounds) / sigma
    return mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / delta))


def theorem_epsilon(sigma: float, rounds: int, delta: float) -> float:
    """Compute epsilon by theorem 1 of PC-TD, with its proof's constant: sigma = 2 sqrt(T ln 1/delta) / epsilon.

    >>> round(theorem_epsilon(0.25, 35, 1e-6))
    176
    """
    _check_delta(delta)
    return 2 * math.sqrt(rounds * math.log(1 / delta)) / sigma


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise ConfigError(f"delta = {delta}: Gaussian noise needs a delta between 0 and 1, such as 1e-6")
