"""Bounds of audits against mechanisms whose law is known: how often a bound exceeds the truth is computed exactly."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from tertulia.privacy.audit import one_run, pairs, sequential, tradeoff
from tertulia.privacy.mechanisms.gaussian import epsilon_of

LEVEL = 0.05


def rate_of(epsilon):
    return 1 / (1 + math.exp(-epsilon))


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.93])
def test_clopper_pearson_misses_a_probability_as_often_as_the_level_allows(p):
    n = 60
    k = np.arange(n + 1)
    missed = np.array([pairs.lower(int(i), n, LEVEL) > p for i in k])
    assert binom.pmf(k, n, p)[missed].sum() <= LEVEL
    missed = np.array([pairs.upper(int(i), n, LEVEL) < p for i in k])
    assert binom.pmf(k, n, p)[missed].sum() <= LEVEL
    assert binom.sf(29, n, pairs.lower(30, n, LEVEL)) == pytest.approx(LEVEL)


@pytest.mark.parametrize("p", [0.1, 0.6])
def test_a_confidence_sequence_holds_at_all_times_together(p):
    """The exact probability that p ever leaves the sequence within 150 draws; a fixed interval fails far oftener."""
    found = {}
    for name, lower in (("sequence", sequential.lower), ("fixed", pairs.lower)):
        alive, excluded = np.array([1.0]), 0.0
        for n in range(1, 151):
            alive = np.convolve(alive, [1 - p, p])
            out = np.array([a > 0 and lower(k, n, LEVEL) > p for k, a in enumerate(alive)])
            excluded += alive[out].sum()
            alive[out] = 0.0
        found[name] = excluded
    assert found["sequence"] <= LEVEL < found["fixed"]


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_one_run_is_exact_for_randomised_response(epsilon):
    """Independent coins, each shown at the worst rate: the number of right guesses follows the law of the bound."""
    m = 200
    for right in (90, 150, 199):
        assert one_run.p_value(right, m, m, epsilon) == pytest.approx(binom.sf(right - 1, m, rate_of(epsilon)))
    above = [v for v in range(m + 1) if one_run.refuted(v, m, m, LEVEL) > epsilon]
    assert binom.pmf(above, m, rate_of(epsilon)).sum() <= LEVEL


def test_one_run_grants_delta():
    """With probability delta a canary is shown, and with delta everything is shown at once."""
    epsilon, delta, m = 1.0, 1e-4, 500
    above = np.array([v for v in range(m + 1) if one_run.refuted(v, m, m, LEVEL, delta) > epsilon])
    each = delta + (1 - delta) * rate_of(epsilon)
    assert binom.pmf(above, m, each).sum() <= LEVEL
    assert delta + (1 - delta) * binom.pmf(above, m, rate_of(epsilon)).sum() <= LEVEL


@pytest.mark.parametrize("mu", [0.65, 1.53])
def test_the_curve_of_a_gaussian_is_refuted_as_seldom_as_the_level_allows(mu):
    m, level = 400, 0.2
    above = [c for c in range(m + 1) if tradeoff.refuted(tradeoff.gaussian, c, m, m, level) > mu]
    assert binom.pmf(above, m, norm.cdf(mu / 2)).sum() <= level
    family = tradeoff.approximate(1e-5)
    above = [c for c in range(m + 1) if tradeoff.refuted(family, c, m, m, level) > 1.0]
    assert binom.pmf(above, m, rate_of(1.0)).sum() <= level


def test_curves_are_inverses_of_the_trade_off():
    x = np.linspace(0.01, 0.99, 50)
    assert [tradeoff.gaussian(1.2)(float(norm.cdf(norm.ppf(v) + 1.2))) for v in x] == pytest.approx(x)
    e, d = math.exp(1.5), 0.01
    blown = [min(e * v + d, 1 - (1 - d - v) / e) for v in x[x < 0.9]]
    assert [tradeoff.approximate(d)(1.5)(y) for y in blown] == pytest.approx(x[x < 0.9])


def responses(epsilon, n, rng):
    """Answers of randomised response to 1 and to 0."""
    return tuple((rng.random(n) < p).astype(float) for p in (rate_of(epsilon), 1 - rate_of(epsilon)))


def test_pairs_find_epsilon_and_mu():
    rng = np.random.default_rng(1)
    found = [pairs.bound(*responses(4.0, 40_000, rng), LEVEL) for _ in range(40)]
    assert sum(one > 4.0 for one in found) <= 5  # 2 are expected at most
    assert min(found) > 3.5
    a, b = rng.normal(1.53, 1, 20_000), rng.normal(0, 1, 20_000)
    assert 1.4 < pairs.bound(a, b, LEVEL, of="mu") < 1.53
    assert 1.4 < pairs.bound(b, a, LEVEL, of="mu") < 1.53
    granted = pairs.bound(np.where(rng.random(20_000) < 0.1, 1.0, 0.0), np.zeros(20_000), LEVEL, delta=0.11)
    assert granted == 0.0  # what shows with probability 0.1 is within delta


def test_a_sequential_audit_stops_early_where_a_claim_is_false():
    rng = np.random.default_rng(2)
    true = sequential.audit(lambda n: responses(3.0, n, rng), 3.0, LEVEL, 400_000)
    false = sequential.audit(lambda n: responses(6.0, n, rng), 3.0, LEVEL, 400_000)
    assert 2.8 < true.bound <= 3.0 < false.bound
    assert false.draws < true.draws < 400_000
    hidden = sequential.audit(lambda n: responses(0.0, n, rng), 3.0, LEVEL, 20_000)
    assert hidden.bound < 0.2
    assert hidden.draws == 20_000
    assert hidden.could_have_shown > 6


@pytest.mark.parametrize("seed", range(4))
def test_a_sequential_audit_chooses_an_event_also_where_the_first_draws_refute_nothing(seed):
    rng = np.random.default_rng(seed)
    found = sequential.audit(lambda n: (rng.normal(0.08, 1, n), rng.normal(0, 1, n)), 0.08, LEVEL, 400_000, of="mu")
    assert 0.04 < found.bound < 0.08


@pytest.mark.parametrize("broken", [False, True])
def test_the_curve_catches_noise_that_the_plain_bound_misses_at_epsilon_8(broken):
    """Noise of half the deviation, 4,000 canaries: the plain one-run bound saturates below 8."""
    rng = np.random.default_rng(3)
    mu = 1.5315 * (2 if broken else 1)
    coins = rng.random(4_000) < 0.5
    scores = rng.normal(0, 1, 4_000) + mu * coins - mu / 2
    by_curve = tradeoff.bound(coins, scores, LEVEL), pairs.bound(scores[coins], scores[~coins], LEVEL, of="mu")
    assert all((one > 1.5315) == broken for one in by_curve)
    assert one_run.bound(coins, scores, LEVEL, 1e-6) < epsilon_of(1.5315, 1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
def test_how_many_canaries_an_epsilon_needs(epsilon):
    least = one_run.canaries_needed(epsilon, LEVEL)
    assert one_run.could_have_shown(least, LEVEL) >= epsilon > one_run.could_have_shown(least - 2, LEVEL)
    m = tradeoff.canaries_needed(1.0, LEVEL)
    assert tradeoff.could_have_shown(m, LEVEL) >= 1.0 > tradeoff.could_have_shown(m // 2, LEVEL)
    assert pairs.could_have_shown(1000, LEVEL, of="mu") > 4


def test_no_guess_shows_nothing():
    coins = np.array([True, False] * 50)
    assert one_run.bound(coins, np.zeros(100), LEVEL) == tradeoff.bound(coins, np.zeros(100), LEVEL) == 0.0
    assert one_run.bound(coins, np.where(coins, -1.0, 1.0), LEVEL) == 0.0  # always wrong
