"""Gaussian noise on a grid: its law, its charge, and what it refuses."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tertulia.errors import ConfigError, InputError
from tertulia.privacy import noise
from tertulia.privacy.mechanisms.noisy_tables import STEP, NoisyTable
from tertulia.privacy.noise import NoiseKey, NoiseStream


def stream(salt="") -> NoiseStream:
    return NoiseKey.fixed(bytes(range(32))).stream("run", "id" + salt, "hash")


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(3), Fraction(17, 2)])
def test_draws_follow_the_discrete_gaussian(sigma):
    n = 200_000
    drawn = stream(str(sigma)).gaussian(n, sigma)
    k = np.arange(-100, 101)
    law = np.exp(-(k**2) / (2 * float(sigma) ** 2))
    expected = n * law / law.sum()
    middle = expected > 10
    observed = np.array([(drawn == i).sum() for i in k[middle]])
    rest = n - expected[middle].sum()
    chi2 = ((observed - expected[middle]) ** 2 / expected[middle]).sum() + (n - observed.sum() - rest) ** 2 / rest
    assert stats.chi2.sf(chi2, middle.sum()) > 1e-3


def test_on_a_fine_grid_draws_are_gaussian():
    sigma = Fraction(4.2) * 2**20
    drawn = stream().gaussian(100_000, sigma) / float(sigma)
    assert stats.kstest(drawn, "norm").pvalue > 1e-3


@pytest.mark.parametrize("rounding", [2.0**-46, 2.0**-8])
def test_floating_point_never_decides(monkeypatch, rounding):
    expected = stream().gaussian(500, Fraction(7, 3))
    settled = []
    settle = NoiseStream._settle
    monkeypatch.setattr(noise, "_ROUNDING", rounding)
    monkeypatch.setattr(NoiseStream, "_settle", lambda *a: settled.append(1) or settle(*a))
    np.testing.assert_array_equal(stream().gaussian(500, Fraction(7, 3)), expected)
    assert bool(settled) == (rounding > 2**-20)


def test_draws_are_frozen():
    """These bits are a promise: a run resumed by a later version must repeat the noise of an earlier one."""
    assert stream().gaussian(8, Fraction(10)).tolist() == [-26, -1, -7, 12, 11, 10, -7, 4]


def test_noise_is_added_to_integers_and_small_rows_are_emptied():
    x = np.array([[3, 4], [1000, 2000]]) * 2**20
    table = NoisyTable("table", sigma=1.0, smallest=100.0)
    released = table.apply(x, stream())
    assert (released[0] == 0).all()
    np.testing.assert_allclose(released[1] * STEP, [1000, 2000], atol=6)
    np.testing.assert_array_equal(released[1], NoisyTable("table", sigma=1.0).apply(x, stream())[1])
    with pytest.raises(InputError, match="only added to integers"):
        table.apply(x * 1.0, stream())


def test_the_charge_is_the_deviation_beside_the_sensitivity():
    assert NoisyTable("table", sigma=3.0, sensitivity=1.5).charge()["noise_multiplier"] == 2.0


@pytest.mark.parametrize("sigma", [0.0, 0.2, 1e9, float("nan")])
def test_noise_for_which_the_grid_is_too_coarse_is_refused(sigma):
    with pytest.raises(ConfigError, match="choose another epsilon"):
        NoisyTable("table", sigma=sigma)
