"""Priors of topic models, and whether as many topics can be as are asked for."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64
from tertulia.errors import ConfigError


def symmetric(alpha: float, topics: int) -> F64:
    """Theta's prior when no topic is preferred; its sum is `alpha`, however many topics there are.

    >>> symmetric(5.0, 2)
    array([2.5, 2.5])
    """
    return np.full(topics, alpha / topics)


def check_topics(topics: int, words: int) -> None:
    """Refuse more topics than words."""
    if topics > words:
        raise ConfigError(f"topics = {topics}, but the agreed vocabulary has only {words} words: ask for fewer topics")
