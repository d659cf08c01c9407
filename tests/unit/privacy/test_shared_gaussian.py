"""Gaussian noise in shares: its exact distribution on the grid, the noise of a sum, and the epsilon of each reader."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from helpers.shared_counts import DELTA, epsilon_of_shift
from tertulia.errors import ConfigError, InputError
from tertulia.federation.party.context import StepContext
from tertulia.federation.plan import Plan
from tertulia.federation.secure.lists import colluding, threshold
from tertulia.privacy.accounting import cost
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.shared_gaussian import LEAST_STEPS, SharedGaussian
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reach import Reach
from tertulia.privacy.releases import Release

DRAWS, BITS = 200_000, 5
SIGMA = LEAST_STEPS / 2**BITS  # 4: the coarsest grid that is allowed


def shared(shares=1, sigma=SIGMA, bits=BITS):
    return SharedGaussian("sums", sensitivity=1.0, sigma=sigma, bits=bits, shares=shares)


def test_the_charge_does_not_depend_on_a_clip():
    multiplier = 3.9 / 7
    clips = np.random.default_rng(5).uniform(0.1, 50, 1000)
    assert len({multiplier * clip / clip for clip in clips}) > 1  # in the last bit
    events = [SharedGaussian("sums", sensitivity=c, sigma=multiplier * c, bits=20).charge() for c in clips]
    assert all(event == events[0] for event in events)
    assert events[0]["noise_multiplier"] == pytest.approx(multiplier, rel=1e-12)


def noise_of(party, mechanism, draws=DRAWS):
    """A party's noise, under a fixed key of its own."""
    stream = NoiseKey.fixed(bytes([party]) * 32).stream("run", "id", "hash")
    return mechanism.apply(np.zeros(draws, np.int64), stream)


def p_value(found, deviation):
    """Chi-squared of integers against the discrete Gaussian: each within three deviations by itself, and both tails."""
    reach = np.arange(-12 * math.ceil(deviation), 12 * math.ceil(deviation) + 1)
    pmf = np.exp(-(reach**2) / (2 * deviation**2))
    pmf /= pmf.sum()
    cells = np.clip(reach, -3 * deviation, 3 * deviation).astype(int)
    places = cells - cells.min()
    expected = np.bincount(places, pmf) * len(found)
    seen = np.clip(found, -3 * deviation, 3 * deviation).astype(int) - cells.min()
    return stats.chisquare(np.bincount(seen, minlength=len(expected)), expected).pvalue


def test_noise_has_the_distribution_of_the_discrete_gaussian_at_every_integer():
    found = noise_of(1, shared())
    assert (found.dtype, found.min() < -3 * LEAST_STEPS, found.max() > 3 * LEAST_STEPS) == (np.int64, True, True)
    assert p_value(found, LEAST_STEPS) > 1e-3
    assert p_value(found, 1.05 * LEAST_STEPS) < 1e-6  # a deviation that is five per cent larger is noticed


@pytest.mark.parametrize("shares", [2, 3])
def test_a_sum_of_shares_has_the_whole_noise(shares):
    mechanism = shared(shares, bits=BITS + 1)  # 256 steps in all
    found = sum(noise_of(party, mechanism) for party in range(shares))
    assert p_value(found, SIGMA * 2**mechanism.bits) > 1e-3
    assert p_value(found + noise_of(9, mechanism), SIGMA * 2**mechanism.bits) < 1e-6  # one party more: more noise


@pytest.mark.parametrize("sigma", [4.0, 4.123456789, 37.7])
@pytest.mark.parametrize("shares", [1, 2, 3, 4, 18])
def test_the_shares_variances_add_up_to_no_less_than_the_whole(sigma, shares):
    """A discrete Gaussian of s >= 128 steps has the variance s² but for a part below 10^-70000."""
    mechanism = shared(shares, sigma=sigma, bits=12)
    total = shares * mechanism._steps**2
    whole = Fraction(sigma * 2**12) ** 2
    assert whole <= total <= whole * (1 + Fraction(1, 10**5))


def test_noise_is_added_to_the_integers_of_any_shape():
    x = np.arange(6).reshape(2, 3)
    stream = lambda: NoiseKey.fixed(bytes(32)).stream("run", "id", "hash")  # noqa: E731
    noise = shared().apply(np.zeros_like(x), stream())
    np.testing.assert_array_equal(shared().apply(x, stream()), x + noise)
    with pytest.raises(InputError, match=r"not float64; clip, scale by 2\*\*b and round"):
        shared().apply(x / 2, stream())


@pytest.mark.parametrize("shares", [1, 5])
def test_the_charge_is_that_of_the_whole_noise(shares):
    mechanism = SharedGaussian("sums", sensitivity=0.5, sigma=SIGMA, bits=12, shares=shares)
    assert mechanism.charge() == {"type": "GaussianDpEvent", "noise_multiplier": SIGMA / 0.5}
    assert mechanism.params() == {"sigma": SIGMA, "shares": shares, "bits": 12}
    assert any(f"noise of at least {shares} parties" in one for one in mechanism.assumptions) == (shares > 1)


@pytest.mark.parametrize(
    ("sigma", "bits", "shares"),
    [(SIGMA * 0.99, BITS, 1), (SIGMA, BITS, 2), (SIGMA, BITS, 0), (1.0, 32, 1), (0.0, BITS, 1)],
    ids=["coarse", "coarse share", "no share", "too fine", "no noise"],
)
def test_a_grid_that_does_not_fit_is_refused(sigma, bits, shares):
    with pytest.raises(ConfigError, match=r"a share must have a deviation from 128 to .*; choose another epsilon"):
        shared(shares, sigma, bits)


@pytest.mark.parametrize("members", range(3, 51))
def test_every_list_has_the_noise_of_as_many_parties_as_there_are_shares(members):
    """t - c: of the fewest survivors of a list, those that do not collude with the server."""
    c = max(1, (members - 1) // 3)
    t = (members + c) // 2 + 1
    assert (c, t) == (colluding(members), threshold(members))
    roster = tuple(f"party{i}" for i in range(members))
    masked, plain = (Plan("m", {}, None, roster, (), terms={"federation.secure": secure}) for secure in (True, False))
    assert noise_shares_at(masked) == t - c
    assert noise_shares_at(plain) == noise_shares_at(None) == 1
    assert noise_shares_at(replace(masked, groups=(roster[:3],))) == 1  # of three, as many may collude as do not


def noise_shares_at(plan):
    """What a step of a party with this plan reads."""
    return StepContext(SimpleNamespace(door=SimpleNamespace(plan=plan)), None, None).noise_shares


@pytest.mark.parametrize("shares", [1, 2, 4])
def test_a_reader_of_single_replies_faces_one_share(shares):
    masked = Release.of(
        shared(shares, bits=12), id="a", party="north", round=1, step="m:s", verb="sum", message_hash="",
        x=np.zeros(4), masked=True,
    )  # fmt: skip
    of_totals, singly = (
        cost([masked], Unit.DOCUMENT, Adjacency.ADD_REMOVE, DELTA, reach=reach).epsilon
        for reach in (Reach(), Reach(singly=True))
    )
    assert of_totals == pytest.approx(epsilon_of_shift(1.0, SIGMA), rel=2e-3)
    assert singly == pytest.approx(epsilon_of_shift(1.0, SIGMA / math.sqrt(shares)), rel=2e-3)
