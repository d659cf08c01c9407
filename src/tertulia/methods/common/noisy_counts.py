"""Topics from sums of counts under Gaussian noise of a known deviation."""

from __future__ import annotations

import math

import numpy as np

from tertulia._arrays import F64
from tertulia.federation.types import Federation

_SHRINK = 0.7  # deviations of the noise by which counts are moved towards the overall frequencies
_FLOOR = 1e-6  # of each word's overall frequency that every topic keeps


def louder(fed: Federation) -> float:
    """Return by how much the noise of a total is larger than the plan's: parties add shares, or all of it each."""
    return math.sqrt(len(fed.answered) / fed.noise_shares)


def denoise(counts: F64, spread: float) -> F64:
    """Estimate topics [K, V] from noisy counts: what noise of this deviation may have made is taken off.

    Every count is moved towards the one that it would have if the topic had the words' overall frequencies.

    >>> denoise(np.array([[9.0, 1.0, 5.5], [1.0, 9.0, 5.5]]), spread=1.0).round(2).tolist()
    [[0.54, 0.11, 0.35], [0.11, 0.54, 0.35]]
    """
    overall = np.maximum(counts.sum(axis=0), 0.0) + 1e-9
    overall /= overall.sum()
    usual = np.maximum(counts.sum(axis=1, keepdims=True), 0.0) * overall
    beyond = counts - usual
    beyond = np.sign(beyond) * np.maximum(np.abs(beyond) - _SHRINK * spread, 0.0)
    found = np.maximum(usual + beyond, 0.0) + (_FLOOR * max(float(usual.sum()), 1.0)) * overall
    topics: F64 = found / found.sum(axis=1, keepdims=True)
    return topics
