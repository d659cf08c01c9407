"""The samplers against their exact probabilities: chi-square over three keys, bars fixed beforehand."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tertulia.privacy.mechanisms import DiscreteLaplace
from tertulia.privacy.noise import NoiseKey, NoiseStream

N = 200_000
KEYS = (1, 2, 3)
WORST_P = 1e-4  # each of ~30 tests fails a sound sampler once in ten thousand keys


def stream(key: int) -> NoiseStream:
    return NoiseKey.fixed(bytes([key]) * 32).stream("run", "release", "message")


def p_value(draws: np.ndarray, log_weight) -> float:
    """Chi-square of integer draws against exp(log_weight), in cells that expect ten draws and more."""
    reach = int(np.abs(draws).max()) + 50
    support = np.arange(-reach, reach + 1)
    pmf = np.exp(log_weight(support))
    expected = N * pmf / pmf.sum()
    observed = np.bincount(draws + reach, minlength=len(support))
    cell = np.minimum(np.cumsum(expected) // 10, N // 10 - 1).astype(int)
    expected, observed = np.bincount(cell, expected), np.bincount(cell, observed)
    full = expected > 0
    return float(stats.chisquare(observed[full], expected[full]).pvalue)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("rate", [Fraction(2), Fraction(1, 3), Fraction(0.1), Fraction(1, 40)])
def test_laplace(rate, key):
    draws = stream(key).laplace(N, rate)
    assert p_value(draws, lambda k: -float(rate) * np.abs(k)) > WORST_P


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("scale", [2**10, 2**30])
def test_wide_noise_follows_the_continuous_law(scale, key):
    """At scale 2^10 the discrete law differs from the continuous one by far less than 200 000 draws can show."""
    draws = stream(key).laplace(N, Fraction(1, scale))
    assert stats.kstest(draws / scale, "laplace").pvalue > WORST_P


@pytest.mark.parametrize("key", KEYS)
def test_draws_are_independent(key):
    draws = stream(key).laplace(N, Fraction(1, 10))
    assert stats.pearsonr(draws[:-1], draws[1:]).pvalue > WORST_P
    assert stats.pearsonr(np.abs(draws[:-1]), np.abs(draws[1:])).pvalue > WORST_P


def test_the_bar_catches_a_wrong_scale():
    """A sampler that is two percent too narrow would not pass."""
    draws = stream(1).laplace(N, Fraction(1, 3) / Fraction(0.98))
    assert p_value(draws, lambda k: -np.abs(k) / 3) < WORST_P


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_no_event_tells_neighbours_apart_better_than_claimed(epsilon):
    """Audit of the Laplace mechanism: the best event's Clopper-Pearson bound nears epsilon, never passes it."""
    mechanism = DiscreteLaplace("count", sensitivity=3, epsilon=epsilon)
    low, high = (mechanism.apply(np.full(N, x), stream(x + 1)) for x in (0, 3))
    bounds = []
    for cut in range(-6, 9):
        hits, misses = int((low <= cut).sum()), int((high <= cut).sum())
        lower = stats.binomtest(hits, N).proportion_ci(0.9999, method="exact").low
        upper = stats.binomtest(misses, N).proportion_ci(0.9999, method="exact").high
        bounds.append(math.log(max(lower, 1e-300) / upper))
    assert 0.9 * epsilon < max(bounds) <= epsilon


def test_noise_has_the_claimed_scale_on_arrays():
    mechanism = DiscreteLaplace("counts", sensitivity=1, epsilon=0.02)
    noisy = mechanism.apply(np.full((400, 500), 1_000_000, dtype=np.int32), stream(5))
    assert noisy.shape == (400, 500)
    assert noisy.dtype == np.int64
    assert abs(noisy.std() / (50 * math.sqrt(2)) - 1) < 0.01
    assert abs(noisy.mean() - 1_000_000) < 1
