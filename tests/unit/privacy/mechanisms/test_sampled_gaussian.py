"""Noise on sums over secret samples: how much an epsilon needs, and what it costs, by two oracles."""

import numpy as np
import pytest
from scipy import stats

from tertulia.errors import ConfigError
from tertulia.privacy.accounting import Loss, compose, guarantee_of
from tertulia.privacy.calibration import noise_multiplier_for
from tertulia.privacy.mechanisms import Adjacency
from tertulia.privacy.mechanisms.sampled_gaussian import SampledGaussian
from tertulia.privacy.sampled import sampled_event

DELTA = 1e-6


def gaussian(sigma, rate):
    return SampledGaussian("sum", sensitivity=1.0, sigma=sigma, bits=16, rate=rate)


@pytest.mark.parametrize(("epsilon", "rate", "steps"), [(1.0, 0.2, 30), (0.1, 1.0, 10)])
def test_the_noise_is_the_least_that_keeps_epsilon(epsilon, rate, steps):
    sigma = noise_multiplier_for(epsilon, DELTA, rate, steps)
    assert guarantee_of(gaussian(sigma, rate), DELTA, steps).epsilon <= epsilon
    assert guarantee_of(gaussian(0.99 * sigma, rate), DELTA, steps).epsilon > epsilon


@pytest.mark.parametrize(
    ("rate", "sigma", "steps"), [pytest.param(0.02, 1.2, 300, marks=pytest.mark.slow), (0.1, 3.0, 1000)]
)
def test_the_cost_is_that_of_opacus(rate, sigma, steps):
    from opacus.accountants import PRVAccountant

    oracle = PRVAccountant()
    oracle.history = [(sigma, rate, steps)]
    expected = oracle.get_epsilon(DELTA, eps_error=0.01)  # an upper bound, at most twice that above
    found = guarantee_of(gaussian(sigma, rate), DELTA, steps)
    assert expected - 0.021 <= found.epsilon <= expected + 1e-3
    assert found.accountant == "PLD"


def epsilon_by_integration(group, rate, sigma):
    """Epsilon of one sum for a user of `group` documents, by the definition, on a fine grid of outcomes."""
    x = np.linspace(-14 * sigma, group + 14 * sigma, 400_001)
    without = stats.norm.pdf(x, 0, sigma)
    with_user = sum(stats.binom.pmf(n, group, rate) * stats.norm.pdf(x, n, sigma) for n in range(group + 1))
    low, high = 0.0, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        pairs = ((with_user, without), (without, with_user))
        delta = max(np.maximum(p - np.exp(middle) * q, 0).sum() * (x[1] - x[0]) for p, q in pairs)
        low, high = (middle, high) if delta > DELTA else (low, middle)
    return high


@pytest.mark.parametrize("group", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_a_users_documents_are_sampled_each_by_its_own_coin(group):
    rate, sigma = 0.1, 3.0
    found = compose([Loss(sampled_event(rate, sigma), Adjacency.ADD_REMOVE, group, 1)], DELTA).epsilon
    assert found == pytest.approx(epsilon_by_integration(group, rate, sigma), abs=5e-3)
    known = compose([Loss(sampled_event(1.0, sigma), Adjacency.ADD_REMOVE, group, 1)], DELTA).epsilon
    assert found < known  # than for a reader who knows the coins


def test_a_replaced_document_costs_more_than_one_that_is_there_or_not():
    event = sampled_event(0.1, 1.5)
    there = compose([Loss(event, Adjacency.ADD_REMOVE, 1, 20)], DELTA).epsilon
    replaced = compose([Loss(event, Adjacency.SUBSTITUTE, 2, 20)], DELTA).epsilon
    assert there < replaced < 2.5 * there


def test_what_is_no_rate_and_what_no_noise_can_keep_is_refused():
    for rate in (0.0, 1.5):
        with pytest.raises(ConfigError, match="is no probability: give a number above 0, at most 1"):
            gaussian(1.0, rate)
    with pytest.raises(ConfigError, match=r"epsilon = 0\.001 is too small for 1000 steps"):
        noise_multiplier_for(0.001, 1e-9, 1.0, 1000)
    assert "known to their party alone" in " ".join(gaussian(1.0, 0.5).assumptions)
    assert gaussian(2.0, 1.0).charge() == {"type": "GaussianDpEvent", "noise_multiplier": 2.0}
