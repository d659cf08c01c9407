"""A bound from one run with many canaries, for a whole curve (Mahloujifar, Melis, Chaudhuri, ICML 2025).

`one_run` knows only epsilon and delta, and saturates: for the Gaussian noise of epsilon 8 it stays near 4, and misses
noise that is three times too small. This bound uses that the canaries' errors of both kinds lie on a curve. For a
mechanism whose trade-off curve is f, each set of numbers of right guesses has bounded probability (their theorem 9).
`likely` runs their recursion from the number of right guesses down to 0: if the probabilities that it must leave for
fewer ones exceed all that there is, this number of right guesses has less than the given probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from tertulia._arrays import Array, Bool
from tertulia.privacy.audit.one_run import right_guesses

Curve = Callable[[float], float]  # the inverse of 1 - f
SHARES = (0.02, 0.1, 0.3, 1.0)  # of the guesses, the surest; each is tried
_LARGEST = 20.0


def gaussian(mu: float) -> Curve:
    """Return the curve of mu-GDP: the least x with 1 - f(x) >= y."""

    def inverse(y: float) -> float:
        return float(ndtr(ndtri(y) - mu)) if 0 < y < 1 else y

    return inverse


def approximate(delta: float) -> Callable[[float], Curve]:
    """Return the curves of (epsilon, delta)-DP, by epsilon."""

    def of(epsilon: float) -> Curve:
        grown = math.exp(epsilon)

        def inverse(y: float) -> float:
            # 1 - f(x) = min(e^eps x + delta, 1 - e^-eps (1 - delta - x)), so its inverse is the larger of the two
            return max(0.0, (y - delta) / grown, 1 - delta - (1 - y) * grown)

        return inverse

    return of


def likely(curve: Curve, right: int, guesses: int, canaries: int, level: float) -> bool:
    """Tell whether a mechanism of this curve could allow this number of right guesses with probability `level`."""
    share = level * guesses / canaries
    r, h = share * right / guesses, share * (guesses - right) / guesses
    most = guesses / canaries
    for i in range(right - 1, -1, -1):
        higher = max(h, curve(r))
        r, h = r + i / (guesses - i) * (higher - h), higher
        if r + h > most:
            return False
    return True


def refuted(
    family: Callable[[float], Curve], right: int, guesses: int, canaries: int, level: float, largest: float = _LARGEST
) -> float:
    """Return the largest parameter (mu, say) of a family of curves that this number of right guesses refutes."""
    if 2 * right <= guesses or likely(family(0.0), right, guesses, canaries, level):
        return 0.0
    low, high = 0.0, largest
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (low, middle) if likely(family(middle), right, guesses, canaries, level) else (middle, high)
    return low


def bound(
    coins: Bool, scores: Array, level: float, family: Callable[[float], Curve] = gaussian,
    shares: Sequence[float] = SHARES,
) -> float:  # fmt: skip
    """Return the largest mu that guesses about `coins` refute; a score above 0 guesses heads, 0 abstains."""
    right, sizes = right_guesses(coins, np.asarray(scores), shares)
    pairs = zip(right, sizes, strict=True)
    return max((refuted(family, v, r, len(coins), level / len(shares)) for v, r in pairs), default=0.0)


def could_have_shown(
    canaries: int, level: float, family: Callable[[float], Curve] = gaussian, shares: Sequence[float] = SHARES
) -> float:
    """Return the bound of an attacker who guesses every coin right."""
    return refuted(family, canaries, canaries, canaries, level / len(shares))


def canaries_needed(mu: float, level: float, shares: Sequence[float] = SHARES) -> int:
    """Return the fewest canaries, as a power of two, by which a perfect attacker shows mu-GDP to be false."""
    canaries = 16
    while could_have_shown(canaries, level, shares=shares) < mu and canaries < 1 << 24:
        canaries *= 2
    return canaries
