"""What Gaussian noise costs over rounds: exactly, by PLD, by the moments accountant, as PC-TD's theorem claims."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from tertulia.errors import ConfigError
from tertulia.privacy.accounting import Loss, _pld_epsilon, compose
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.gaussian import (
    epsilon_of,
    moments_epsilon,
    real_levels,
    sigma_for,
    theorem_epsilon,
)
from tertulia.privacy.mechanisms.unit_counts import NoisyUnits, other_levels, pctd_claim


@pytest.mark.parametrize(("delta", "expected"), [(1e-5, 380), (1e-6, 392)])
def test_the_papers_noise_costs_hundreds_at_token_level(delta, expected):
    assert real_levels(0.25, 35, delta, tokens=100).token == pytest.approx(expected, abs=0.5)


def test_levels_grow_with_what_changes():
    levels = real_levels(0.25, 35, 1e-6, tokens=400)
    assert levels.replaced == pytest.approx(718, abs=0.5)
    assert levels.document == pytest.approx(114_249, rel=1e-3)
    assert real_levels(0.25, 35, 1e-6, tokens=400, repeats=3).document > levels.document


@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0])
def test_epsilon_is_where_the_curve_of_gaussian_dp_meets_delta(mu):
    epsilon = epsilon_of(mu, 1e-6)
    delta = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-6, rel=1e-6)
    assert 1 / sigma_for(epsilon, 1e-6, 1) == pytest.approx(mu)


@pytest.mark.parametrize(("sigma", "rounds"), [(5.0, 35), (2.0, 10), (0.25, 35)])
def test_the_accountants_stand_in_order(sigma, rounds):
    exact = real_levels(sigma, rounds, 1e-6, tokens=1).token
    event = NoisyUnits("counts", sigma=sigma).charge()
    losses = [Loss(event, Adjacency.NULL_REPLACE, 1, rounds)]
    assert compose(losses, 1e-6).epsilon == pytest.approx(exact, rel=1e-9)
    assert exact <= _pld_epsilon(losses, 1e-6) * (1 + 1e-9) < 1.01 * exact
    assert exact < moments_epsilon(sigma, rounds, 1e-6)


def test_the_theorem_claims_too_little_where_the_paper_uses_it():
    assert theorem_epsilon(0.25, 35, 1e-6) < real_levels(0.25, 35, 1e-6, tokens=1).token
    assert theorem_epsilon(20, 35, 1e-6) > real_levels(20, 35, 1e-6, tokens=1).token  # where its proof holds, it does
    assert pctd_claim(0.25, 35, 1e-6).epsilon == pytest.approx(2 * math.sqrt(35 * math.log(1e6)) / 0.25)


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 392.0])
def test_epsilon_picks_sigma_and_back(epsilon):
    sigma = sigma_for(epsilon, 1e-6, 35)
    assert real_levels(sigma, 35, 1e-6, tokens=1).token == pytest.approx(epsilon, rel=1e-9)


def test_the_ledger_takes_all_words_of_a_document_to_move_one_count():
    event = NoisyUnits("counts", sigma=20.0).charge()
    ledger = compose([Loss(event, Adjacency.NULL_REPLACE, 5, 35)], 1e-6).epsilon
    assert ledger == pytest.approx(real_levels(20.0, 35, 1e-6, tokens=5, repeats=5).document, rel=0.01)
    assert ledger > real_levels(20.0, 35, 1e-6, tokens=5).document


def test_hardly_any_noise_lost_is_free():
    assert epsilon_of(1e-9, 1e-6) == 0.0
    assert epsilon_of(0.0, 1e-6) == 0.0


def test_the_moments_accountant_is_the_smallest_of_all_lambdas():
    lambdas = np.linspace(0.01, 50, 200_000)
    alpha = 35 * lambdas * (lambdas + 1) / (2 * 2.0**2)
    assert moments_epsilon(2.0, 35, 1e-6) == pytest.approx(((alpha - math.log(1e-6)) / lambdas).min(), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: epsilon_of(1.0, 0.0), "delta = 0.0"),
        (lambda: sigma_for(0.0, 1e-6, 1), "epsilon = 0.0"),
        (lambda: NoisyUnits("counts", sigma=0.0), "sigma = 0.0"),
        (lambda: NoisyUnits("counts", sigma=1.0, unit=Unit.DOCUMENT), "hide a token"),
        (lambda: NoisyUnits("counts", sigma=1.0, adjacency=Adjacency.ADD_REMOVE), "a token more would move"),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(ConfigError, match=says):
        call()


def test_a_word_replaced_moves_two_counts():
    replaced = NoisyUnits("counts", sigma=1.0, adjacency=Adjacency.SUBSTITUTE)
    assert replaced.charge()["noise_multiplier"] == pytest.approx(1 / math.sqrt(2))
    assert "718" in other_levels(0.25, 35, 1e-6)
