"""Priors of topic models, checks of the number of topics, and bounds on parties' weights."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import ConfigError


def symmetric(alpha: float, topics: int) -> F64:
    """Return theta's prior when no topic is preferred; its sum is `alpha`, for any number of topics.

    >>> symmetric(5.0, 2)
    array([2.5, 2.5])
    """
    return np.full(topics, alpha / topics)


def by_size(alpha: float, sizes: Array) -> F64:
    """Return theta's prior when only each topic's number of tokens is known: in proportion to it, with sum `alpha`.

    Each counts as one token larger than it is, so that no topic is ruled out.

    >>> by_size(5.0, np.array([7, 1]))
    array([4., 1.])
    """
    prior: F64 = alpha * (sizes + 1.0) / (sizes + 1.0).sum()
    return prior


def check_topics(topics: int, words: int) -> None:
    """Refuse more topics than words."""
    if topics > words:
        raise ConfigError(f"topics = {topics}, but the agreed vocabulary has only {words} words: ask for fewer topics")


def bound_weights(weights: F64, most: float) -> F64:
    """Bound weights by `most` times the median, so that a party gains nothing by claiming more.

    >>> bound_weights(np.array([10.0, 12.0, 1e9]), 1.5)
    array([10., 12., 18.])
    """
    return np.minimum(weights, most * np.median(weights))
