"""Alias tables: the distribution of a table is that of its weights, for any weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.kernels.core import alias


def table(weight):
    K = len(weight)
    keep, other = np.empty(K, dtype=np.float32), np.empty(K, dtype=np.int32)
    alias.build(np.array(weight, dtype=np.float64), keep, other, np.empty(K, dtype=np.int32))
    return keep, other


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60).filter(lambda weights: sum(weights) > 1e-3))
def test_a_table_holds_exactly_the_weights(weights):
    keep, other = table(weights)
    mass = (keep + np.bincount(other, 1.0 - keep, minlength=len(weights))) / len(weights)  # of each cell's two outcomes
    assert np.allclose(mass, np.array(weights) / sum(weights), atol=1e-6)
    assert ((keep >= 0) & (keep <= 1)).all()
    assert ((other >= 0) & (other < len(weights))).all()


@pytest.mark.parametrize("K", [1, 2, 7, 100])
def test_draws_follow_the_table(K):
    weight = np.random.default_rng(K).gamma(0.3, size=K)
    keep, other = table(weight)
    grid = (np.arange(200_000) + 0.5) / 200_000
    shares = np.bincount([alias.draw(keep, other, u) for u in grid], minlength=K) / len(grid)
    assert np.abs(shares - weight / weight.sum()).max() < 2 * K / len(grid) + 1e-6


def test_random_draws_have_the_right_shares():
    keep, other = table([1.0, 0.0, 5.0, 2.0])
    seen = np.bincount([alias.draw(keep, other, u) for u in np.random.default_rng(3).random(80_000)])
    expected = np.array([1.0, 0.0, 5.0, 2.0]) * 10_000
    assert seen[1] == 0
    assert ((seen - expected)[[0, 2, 3]] ** 2 / expected[[0, 2, 3]]).sum() < 16  # chi-square, 2 degrees: p = 3e-4
