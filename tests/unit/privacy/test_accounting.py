"""Accounting against closed forms, brute force, and known values."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from helpers.marks import slow
from helpers.mechanisms import Concentrated
from tertulia.errors import FormatError
from tertulia.privacy.accounting import Guarantee, Loss, _coarsen, _pld_epsilon, compose, cost, vacuity_or_none
from tertulia.privacy.adjacency import Bounds, multiplicity
from tertulia.privacy.events import flatten, from_data
from tertulia.privacy.mechanisms import Adjacency, Clear, DiscreteLaplace, Mechanism, Public, Unit
from tertulia.privacy.releases import Release

SUBSTITUTE, ADD_REMOVE, NULL_REPLACE = Adjacency.SUBSTITUTE, Adjacency.ADD_REMOVE, Adjacency.NULL_REPLACE
GAUSSIAN, LAPLACE = "GaussianDpEvent", "LaplaceDpEvent"


def noisy(kind: str, multiplier: float) -> dict:
    return {"type": kind, "noise_multiplier": multiplier}


def k_rr(epsilon: float, words: int) -> dict:
    p = words / (math.exp(epsilon) + words - 1)
    return {"type": "RandomizedResponseDpEvent", "noise_parameter": p, "num_buckets": words}


def loss(event: dict, count: int = 1, group: int = 1, adjacency: Adjacency = ADD_REMOVE) -> Loss:
    return Loss(event, adjacency, group, count)


def release(mechanism: Mechanism, name: str = "a", *, local: bool = False) -> Release:
    record = Release.of(
        mechanism, id=name, party="north", round=1, step="m:s", verb="sum", message_hash="", x=np.zeros(1, int)
    )
    return replace(record, local=local)


def gaussian_delta(epsilon: float, mu: float) -> float:
    return stats.norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize(("mu", "count"), [(0.2367, 1), (0.6477, 1), (1.5315, 1), (0.5, 9)])
def test_gaussian_noise_costs_what_the_closed_form_says(mu, count):
    result = compose([loss(noisy(GAUSSIAN, 1 / mu), count)], 1e-6)
    assert result.accountant == "Gaussian"
    assert result.tight
    assert gaussian_delta(result.epsilon, mu * math.sqrt(count)) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("mu", [0.1, 0.3])
def test_the_closed_form_is_what_the_grid_gives(mu):
    """By composing the privacy loss distribution of each of nine events, on a grid that is rounded up."""
    one = loss(noisy(GAUSSIAN, 1 / mu), 9)
    assert compose([one], 1e-6).epsilon == pytest.approx(_pld_epsilon([one], 1e-6), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("event", ["laplace", "discrete", "k-rr"])
def test_one_pure_event_costs_its_epsilon(event, epsilon):
    discrete = {"type": "DiscreteLaplaceDpEvent", "noise_parameter": epsilon / 4, "sensitivity": 4}
    data = {"laplace": noisy(LAPLACE, 1 / epsilon), "discrete": discrete, "k-rr": k_rr(epsilon, 1000)}[event]
    exact = compose([loss(data, adjacency=SUBSTITUTE)], 0.0)
    assert exact.epsilon == pytest.approx(epsilon, rel=1e-9)
    relaxed = compose([loss(data, adjacency=SUBSTITUTE)], 1e-6)
    assert epsilon - 1e-3 < relaxed.epsilon <= exact.epsilon


def test_laplace_at_a_delta_costs_what_the_closed_form_says():
    """delta(e) = 1 - exp((e - epsilon)/2) for one Laplace event."""
    delta = 0.05
    result = compose([loss(noisy(LAPLACE, 1.0))], delta)
    assert result.epsilon == pytest.approx(1 + 2 * math.log(1 - delta), abs=1e-3)


@pytest.mark.parametrize(
    ("one", "delta", "measured"),
    [
        slow(loss(noisy(GAUSSIAN, 0.25), 35), 1e-5, 380),  # PC-TD, T=35, sigma=.25
        (loss(noisy(GAUSSIAN, 0.25), 35), 1e-6, 392),
        slow(loss(noisy(GAUSSIAN, 0.25 / math.sqrt(2)), 35), 1e-5, 702),  # by substitution
        (loss(noisy(LAPLACE, 1 / 8), 120, adjacency=NULL_REPLACE), 1e-6, 913),  # FTM, 120 tokens
        (loss(noisy(LAPLACE, 1 / 8), 240, adjacency=SUBSTITUTE), 1e-6, 1791),
        slow(loss(noisy(LAPLACE, 1 / 11), 120, adjacency=NULL_REPLACE), 1e-6, 1273),
        (loss(k_rr(8, 2949), 120, adjacency=SUBSTITUTE), 1e-6, 687),
        slow(loss(k_rr(4, 2949), 120, adjacency=SUBSTITUTE), 1e-6, 47.5),
        (loss(k_rr(4, 2949), 10, adjacency=SUBSTITUTE), 1e-6, 16.0),
    ],
)
def test_the_claims_table_is_reproduced(one, delta, measured):
    assert compose([one], delta).epsilon == pytest.approx(measured, rel=3e-3)


def test_null_replacement_of_k_rr_costs_ln_pv():
    epsilon, words = 4.0, 100
    keep = math.exp(epsilon) / (math.exp(epsilon) + words - 1)
    result = compose([loss(k_rr(epsilon, words), adjacency=NULL_REPLACE)], 0.0)
    assert result.epsilon == pytest.approx(max(math.log(keep * words), -math.log((1 - keep) / (words - 1) * words)))


def test_concentrated_dp_is_sound_and_near_the_gaussian():
    mu = 1.5315
    concentrated = compose([loss({"type": "ZCDpEvent", "rho": mu**2 / 2, "xi": 0.0})], 1e-6)
    assert concentrated.accountant == "RDP"
    assert not concentrated.tight
    assert 8.0 <= concentrated.epsilon < 8.6


def test_mixed_events_take_the_better_accountant():
    concentrated, pure = loss({"type": "ZCDpEvent", "rho": 0.5, "xi": 0.0}), loss(noisy(LAPLACE, 1.0))
    mixed = compose([concentrated, pure], 1e-6)
    alone = compose([concentrated], 1e-6)
    assert alone.epsilon < mixed.epsilon <= compose([concentrated], 5e-7).epsilon + 1.0
    many = compose([concentrated, loss(noisy(LAPLACE, 10.0), 50)], 1e-6)
    assert many.accountant in ("RDP", "PLD + RDP")
    assert many.epsilon < alone.epsilon + 5.0  # better than pure composition of the fifty


def test_composition_never_costs_less_than_a_part():
    parts = [loss(noisy(GAUSSIAN, 2.0)), loss(noisy(LAPLACE, 1.0), 3), loss(k_rr(2, 50), adjacency=SUBSTITUTE)]
    assert compose(parts, 1e-6).epsilon > max(compose([part], 1e-6).epsilon for part in parts)


@pytest.mark.parametrize("event", [noisy(GAUSSIAN, 0.0), {"type": "ZCDpEvent", "rho": 1.0, "xi": 2.0}, {"type": "New"}])
def test_what_no_accountant_knows_costs_infinity(event):
    result = compose([loss(event)], 1e-6)
    assert result.epsilon == math.inf
    assert event["type"] in result.assumptions[-1]


def test_unknown_events_are_not_rebuilt():
    with pytest.raises(FormatError, match="no event of dp-accounting"):
        from_data({"type": "getattr"})


def test_compositions_are_flattened():
    one = noisy(GAUSSIAN, 2.0)
    nested = {"type": "ComposedDpEvent", "events": [one, {"type": "SelfComposedDpEvent", "event": one, "count": 3}]}
    assert flatten(nested) == [(one, 1), (one, 3)]
    assert flatten({"type": "NoOpDpEvent"}) == []


def hockey_stick(upper: np.ndarray, lower: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0).sum())


def laplace_pmf(rate: float, shift: int, reach: int = 60) -> np.ndarray:
    weights = np.exp(-rate * np.abs(np.arange(-reach, reach + 1) - shift))
    return weights / weights.sum()


@pytest.mark.parametrize("epsilon", np.linspace(0, 1.9, 8))
def test_one_coordinate_is_the_worst_of_the_l1_ball(epsilon):
    """The event of DiscreteLaplace charges a shift within one coordinate: spread over two it tells no more."""
    rate = 0.5
    one = hockey_stick(laplace_pmf(rate, 0), laplace_pmf(rate, 4), epsilon)
    for a, b in ((1, 3), (2, 2)):
        both = np.outer(laplace_pmf(rate, 0), laplace_pmf(rate, 0))
        moved = np.outer(laplace_pmf(rate, a), laplace_pmf(rate, b))
        assert hockey_stick(both, moved, epsilon) <= one + 1e-9


@pytest.mark.parametrize("epsilon", np.linspace(0, 1.1, 6))
def test_a_coarser_grid_bounds_a_finer_one(epsilon):
    fine = hockey_stick(laplace_pmf(0.1, 0, 300), laplace_pmf(0.1, 12, 300), epsilon)
    coarse = hockey_stick(laplace_pmf(0.3, 0, 100), laplace_pmf(0.3, 4, 100), epsilon)
    assert fine <= coarse + 1e-9
    rate, shift = _coarsen(1e-6, 3_000_001)
    assert 3.000001 <= rate * shift <= 3.000001 * (1 + 1 / 1000)
    assert shift <= 4001


@pytest.mark.parametrize(
    ("known", "asked", "bounds", "local", "expected"),
    [
        ((Unit.TOKEN, SUBSTITUTE), (Unit.TOKEN, SUBSTITUTE), Bounds(), True, (1, 1)),
        ((Unit.TOKEN, SUBSTITUTE), (Unit.DOCUMENT, SUBSTITUTE), Bounds(120), True, (1, 120)),
        ((Unit.TOKEN, SUBSTITUTE), (Unit.DOCUMENT, SUBSTITUTE), Bounds(120), False, (120, 1)),
        ((Unit.TOKEN, NULL_REPLACE), (Unit.USER, SUBSTITUTE), Bounds(120, 3), True, (2, 360)),
        ((Unit.DOCUMENT, ADD_REMOVE), (Unit.DOCUMENT, SUBSTITUTE), Bounds(), False, (2, 1)),
        ((Unit.DOCUMENT, ADD_REMOVE), (Unit.TOKEN, NULL_REPLACE), Bounds(), False, (2, 1)),
        ((Unit.DOCUMENT, SUBSTITUTE), (Unit.TOKEN, ADD_REMOVE), Bounds(), False, (1, 1)),
    ],
)
def test_units_are_converted_by_counting_neighbours(known, asked, bounds, local, expected):
    many = multiplicity(known, asked, bounds, local=local)
    assert (many.group, many.copies) == expected
    assert not many.why_not


@pytest.mark.parametrize(
    ("known", "asked", "why"),
    [
        ((Unit.TOKEN, SUBSTITUTE), (Unit.DOCUMENT, SUBSTITUTE), "no limit of tokens per document"),
        ((Unit.DOCUMENT, SUBSTITUTE), (Unit.PARTY, SUBSTITUTE), "no limit of documents per user"),
        ((Unit.TOKEN, NULL_REPLACE), (Unit.TOKEN, ADD_REMOVE), "null-replace says nothing about add-remove"),
        ((Unit.TOKEN, SUBSTITUTE), (Unit.TOKEN, NULL_REPLACE), "substitute says nothing about null-replace"),
    ],
)
def test_what_cannot_be_converted_costs_infinity(known, asked, why):
    mechanism = DiscreteLaplace("counts", 1, 1.0, unit=known[0], adjacency=known[1])
    result = cost([release(mechanism)], *asked, delta=1e-6)
    assert result.epsilon == math.inf
    assert why in result.assumptions[-1]
    assert not result.tight


def test_a_party_is_never_hidden_by_larger_limits():
    mechanism = DiscreteLaplace("counts", 1, 1.0, unit=Unit.USER)
    assert cost([release(mechanism)], Unit.PARTY, ADD_REMOVE, 1e-6, Bounds(1, 1)).epsilon == math.inf


def test_tokens_are_not_documents():
    """The same noise that hides a token at epsilon 0.1 hides a document of 40 tokens at 4, and says what it assumes."""
    mechanism = DiscreteLaplace("counts", 1, 0.1, unit=Unit.TOKEN)
    token = cost([release(mechanism)], Unit.TOKEN, ADD_REMOVE, 0.0)
    document = cost([release(mechanism)], Unit.DOCUMENT, ADD_REMOVE, 0.0, Bounds(40))
    assert (token.epsilon, document.epsilon) == (pytest.approx(0.1), pytest.approx(4.0))
    assert document.assumptions == ("a document holds at most 40 tokens",)


def test_a_group_of_tokens_moves_gaussian_noise_further_than_copies_do():
    mechanism = Concentrated("counts", rho=0.0002, unit=Unit.TOKEN)
    central, local = (
        cost([release(mechanism, local=local)], Unit.DOCUMENT, ADD_REMOVE, 1e-6, Bounds(100)).epsilon
        for local in (False, True)
    )
    assert central == pytest.approx(compose([loss({"type": "ZCDpEvent", "rho": 2.0, "xi": 0.0})], 1e-6).epsilon)
    assert local == pytest.approx(compose([loss({"type": "ZCDpEvent", "rho": 0.02, "xi": 0.0})], 1e-6).epsilon)


def test_clear_costs_infinity_and_public_nothing():
    public, clear = release(Public("number of documents")), release(Clear("topics"), "b")
    free = cost([public], Unit.DOCUMENT, ADD_REMOVE, 0.0)
    assert (free.epsilon, free.assumptions) == (0.0, ("number of documents is public",))
    naked = cost([public, clear], Unit.DOCUMENT, ADD_REMOVE, 1e-6)
    assert naked.epsilon == math.inf
    assert naked.assumptions[-1] == "topics left in the clear"


def test_vacuous_guarantees_are_called_so():
    def guarantee(epsilon: float, delta: float = 1e-6) -> Guarantee:
        return Guarantee(epsilon, delta, "PLD", (), True)

    assert "ln 2949" in str(vacuity_or_none(guarantee(8.0), NULL_REPLACE, words=2949))
    assert vacuity_or_none(guarantee(7.9), NULL_REPLACE, words=2949) is None
    assert vacuity_or_none(guarantee(8.0), SUBSTITUTE, words=2949) is None
    assert "1/500" in str(vacuity_or_none(guarantee(1.0, 0.002), ADD_REMOVE, population=500))
    assert vacuity_or_none(guarantee(1.0, 0.0019), ADD_REMOVE, population=500) is None
    assert vacuity_or_none(guarantee(math.inf), NULL_REPLACE, population=1, words=2) is None


@pytest.mark.parametrize("kind", [GAUSSIAN, LAPLACE, "ZCDpEvent", "DiscreteLaplaceDpEvent"])
@pytest.mark.parametrize(("epsilon", "rounds"), [(1e3, 1), (1e3, 1000), (1e6, 1), (1e6, 100_000), (300.0, 10**8)])
def test_almost_no_noise_gives_a_large_epsilon(kind, epsilon, rounds):
    """Almost no noise gives a number that says so: dp-accounting overflowed, for Gaussians."""
    data = {"ZCDpEvent": {"type": kind, "rho": epsilon}}.get(kind, noisy(kind, 1 / epsilon))
    if kind == "DiscreteLaplaceDpEvent":
        data = {"type": kind, "noise_parameter": epsilon, "sensitivity": 1}
    found = compose([Loss(data, SUBSTITUTE, 1, rounds)], 1e-6).epsilon
    assert found >= 0.9 * epsilon
    mixed = compose([Loss(data, SUBSTITUTE, 1, rounds), Loss(noisy(GAUSSIAN, 1.0), SUBSTITUTE, 1, 5)], 1e-6).epsilon
    assert mixed >= 0.9 * epsilon
