"""Priors of topic models, and whether as many topics can be as are asked for."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import ConfigError


def symmetric(alpha: float, topics: int) -> F64:
    """Theta's prior when no topic is preferred; its sum is `alpha`, however many topics there are.

    >>> symmetric(5.0, 2)
    array([2.5, 2.5])
    """
    return np.full(topics, alpha / topics)


def by_size(alpha: float, sizes: Array) -> F64:
    """Theta's prior when all that is known of topics is how many tokens each holds: in proportion, with sum `alpha`.

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
