"""Bounds that hold at any time, so that an audit stops as soon as it knows enough.

The number of successes k of n draws of probability p has the likelihood ratio B(k + 1, n - k + 1) / (p^k (1 - p)^(n-k))
against a uniform mixture of all probabilities. Under p that is a martingale of mean 1, so by Ville's inequality it ever
reaches 1 / level with a probability of at most `level` (Robbins 1970). The values of p for which it has not are a
confidence sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from tertulia._arrays import Array
from tertulia.privacy.audit import pairs

Draw = Callable[[int], tuple[Array, Array]]  # scores of n draws on each of two neighbours
_FIRST = 2_000  # draws by which the event is chosen, at least
_CLOSE = 0.95  # of the claim: more draws would tell little


class Found(NamedTuple):
    """A bound, that of a perfect attacker with as many draws as were allowed, and the draws that were needed."""

    bound: float
    could_have_shown: float
    draws: int


def lower(successes: int, trials: int, level: float) -> float:
    """Return the lower end of the confidence sequence after some trials.

    >>> 0.9 < lower(1000, 1000, 0.05) < pairs.lower(1000, 1000, 0.05)
    True
    """
    if successes == 0:
        return 0.0
    mixture, most = float(betaln(successes + 1, trials - successes + 1)), -math.log(level)
    low, high = 0.0, successes / trials
    for _ in range(60):
        p = (low + high) / 2
        likelihood = float(xlogy(successes, p) + xlog1py(trials - successes, -p))
        low, high = (p, high) if mixture - likelihood >= most else (low, p)
    return low


def upper(successes: int, trials: int, level: float) -> float:
    """Return the upper end of the confidence sequence after some trials."""
    return 1.0 - lower(trials - successes, trials, level)


def audit(draw: Draw, claimed: float, level: float, most: int, delta: float = 0.0, of: pairs.Of = "epsilon") -> Found:
    """Draw until a claim is refuted, or nearly reached, or `most` draws were made."""
    event, first = _choose(draw, (level, delta), most, of)
    hits, n, found = [0, 0], 0, 0.0
    while n + first < most and found < _CLOSE * claimed:
        more = min(max(_FIRST, n), most - n - first)
        scores = draw(more)
        hits, n = [hit + event.count(own) for hit, own in zip(hits, scores, strict=True)], n + more
        found = max(found, _bound(event, hits, n, (level, delta), of))
    return Found(found, _perfect(most - first, (level, delta), of), n + first)


def _choose(draw: Draw, terms: tuple[float, float], most: int, of: pairs.Of) -> tuple[pairs.Event, int]:
    """Choose an event, and return it with the number of draws: as many as show something, a quarter of all at most."""
    scores, n = draw(_FIRST), _FIRST
    while True:
        event = pairs.best_event(*scores, *terms, of)
        if 8 * n > most or pairs.of_event(event, *scores, *terms, of) > 0:
            return event, n
        scores = tuple(np.concatenate(own) for own in zip(scores, draw(n), strict=True))  # type: ignore[assignment]
        n *= 2


def _bound(event: pairs.Event, hits: list[int], n: int, terms: tuple[float, float], of: pairs.Of) -> float:
    level, delta = terms
    one, other = hits[::-1] if event.swapped else hits
    p, q = lower(one, n, level / 2), upper(other, n, level / 2)
    return pairs.mu_of_rates(p, q) if of == "mu" else pairs.epsilon_of_rates(p, q, delta)


def _perfect(n: int, terms: tuple[float, float], of: pairs.Of) -> float:
    return _bound(pairs.Event(0.0, 1, swapped=False), [n, 0], n, terms, of)
