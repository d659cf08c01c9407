"""A bound from one run with many canaries (Steinke, Nasr, Jagielski, NeurIPS 2023, theorem 5.2).

Each of m canaries is one of two things, by a fair coin. The auditor guesses r of the coins, and abstains where a score
says little. At (epsilon, delta), v right guesses or more have a probability of at most
    P[W >= v] + 2 m delta alpha,    W ~ Binomial(r, e^epsilon / (1 + e^epsilon)),
    alpha = max over i of P[v > W >= v - i] / i.
The largest epsilon at which this is below the level is a lower bound of the real one. Several numbers of guesses are
tried, the surest ones, and share the level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import binom

from tertulia._arrays import Array, Bool

SHARES = (0.02, 0.1, 0.3, 1.0)  # of the guesses, the surest; each is tried
_LARGEST = 60.0


def bound(coins: Bool, scores: Array, level: float, delta: float = 0.0, shares: Sequence[float] = SHARES) -> float:
    """Return the largest epsilon that guesses about `coins` refute; a score above 0 guesses heads, 0 abstains."""
    right, sizes = right_guesses(coins, scores, shares)
    return max(
        (refuted(v, r, len(coins), level / len(shares), delta) for v, r in zip(right, sizes, strict=True)), default=0.0
    )


def right_guesses(coins: Bool, scores: Array, shares: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the numbers of right guesses and of guesses, for each share of the surest ones."""
    order = np.argsort(-np.abs(scores), kind="stable")
    order = order[np.abs(scores[order]) > 0]
    if not len(order):
        return [], []
    right = np.cumsum((scores[order] > 0) == coins[order])
    sizes = [max(1, int(share * len(order))) for share in shares]
    return [int(right[size - 1]) for size in sizes], sizes


def p_value(right: int, guesses: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest probability of this number of right guesses under (epsilon, delta)-DP.

    >>> round(p_value(10, 10, 10, math.log(3)), 4) == round(0.75**10, 4)
    True
    """
    rate = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, rate))
    if delta == 0:
        return beta
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, rate))  # P[v > W >= v - i], i = 1, 2, ...
    alpha = float(np.max(below / np.arange(1, right + 1))) if right else 0.0
    return min(1.0, beta + 2 * canaries * delta * alpha)


def refuted(right: int, guesses: int, canaries: int, level: float, delta: float = 0.0) -> float:
    """Return the largest epsilon at which this number of right guesses has a probability below `level`."""
    if p_value(right, guesses, canaries, 0.0, delta) >= level:
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(50):
        middle = (low + high) / 2
        below = p_value(right, guesses, canaries, middle, delta) < level
        low, high = (middle, high) if below else (low, middle)
    return low


def could_have_shown(canaries: int, level: float, delta: float = 0.0, shares: Sequence[float] = SHARES) -> float:
    """Return the bound of an attacker who guesses every coin right."""
    return refuted(canaries, canaries, canaries, level / len(shares), delta)


def canaries_needed(epsilon: float, level: float, shares: Sequence[float] = SHARES) -> int:
    """Return the fewest canaries by which a perfect attacker shows an epsilon, at delta 0.

    >>> could_have_shown(canaries_needed(4.0, 0.05), 0.05) >= 4.0
    True
    """
    return math.ceil(math.log(level / len(shares)) / -math.log1p(math.exp(-epsilon))) + 1
