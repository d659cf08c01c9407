"""The counter-based random numbers: uniform, unrelated between counters and keys, and Gamma where it claims to be."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammainc, gammaln

from tertulia.kernels.core import rng
from tertulia.kernels.core.jit import kernel

N = 200_000


@kernel
def words(key, n):
    return np.array([rng.bits(key, np.uint64(i)) for i in range(n)])


@kernel
def uniforms(key, n):
    return np.array([rng.uniform(key, np.uint64(i)) for i in range(n)])


@kernel
def floats(key, n):
    return np.array([rng.uniform32(key, np.uint64(i)) for i in range(n)])


@kernel
def gammas(shape, key, n):
    return np.array([rng.gamma(shape, rng.bits(key, np.uint64(i))) for i in range(n)])


@kernel
def log_small_gammas(shape, key, n):
    return np.array([rng.log_small_gamma(shape, rng.bits(key, np.uint64(i))) for i in range(n)])


def test_first_words_are_splitmix64():
    # Vigna's splitmix64.c, seed 1234567
    first = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert words(np.uint64(1234567), 3).tolist() == first
    assert [int(rng.derive(1234567, i)) for i in range(3)] == first  # the same outside of kernels


def test_uniforms_are_the_first_bits_of_words():
    key = rng.derive(8)
    assert np.array_equal(uniforms(key, 1000), ((words(key, 1000) >> np.uint64(12)) + 0.5) * 2.0**-52)
    assert np.array_equal(floats(key, 1000), (words(key, 1000) >> np.uint64(40)).astype(np.float32) / 2**24)


@pytest.mark.parametrize("draw", [uniforms, floats])
def test_uniform_in_one_and_two_dimensions(draw):
    u = draw(rng.derive(1, 2), N)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    flat = np.histogram(u, 100, (0, 1))[0]
    pairs = np.histogram2d(u[:-1:2], u[1::2], 20, ((0, 1), (0, 1)))[0].ravel()
    assert stats.chisquare(flat).pvalue > 1e-3
    assert stats.chisquare(pairs).pvalue > 1e-3


def test_neighbouring_keys_and_counters_are_unrelated():
    streams = np.stack([uniforms(rng.derive(5, s), N) for s in range(4)])
    correlation = np.corrcoef(streams) - np.eye(4)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(N)
    lagged = [np.corrcoef(streams[0, lag:], streams[0, :-lag])[0, 1] for lag in (1, 2, 7, 64)]
    assert np.abs(lagged).max() < 4.5 / np.sqrt(N)


def test_every_bit_is_fair():
    ones = np.unpackbits(words(rng.derive(9), 20_000).view(np.uint8).reshape(-1, 8), axis=1).mean(axis=0)
    assert np.abs(ones - 0.5).max() < 4.5 * 0.5 / np.sqrt(20_000)


def test_derive_depends_on_every_label_and_accepts_any_integer():
    keys = {int(rng.derive(k, a, b)) for k in (-1, 0, 2**64 - 2, 2**70 + 5) for a in range(4) for b in range(4)}
    assert len(keys) == 4 * 4 * 4


@pytest.mark.parametrize("shape", [0.01, 0.3, 0.99, 1.0, 1.01, 2.5, 100.0])
def test_gamma(shape):
    x = gammas(shape, rng.derive(3, int(shape * 100)), 50_000)
    assert stats.kstest(x, stats.gamma(shape).cdf).pvalue > 1e-3
    assert abs(x.mean() - shape) < 4.5 * np.sqrt(shape / 50_000)


@pytest.mark.parametrize("shape", [0.003, 0.01, 0.3, 0.99])
def test_small_gamma_in_logs_keeps_what_a_float_would_lose(shape):
    x = log_small_gammas(shape, rng.derive(4, int(shape * 1000)), 50_000)
    assert np.isfinite(x).all()
    assert shape > 0.01 or (x < -745).any()  # beyond the smallest float
    below = np.exp(shape * x - gammaln(shape + 1.0))  # P(X < e^x) for tiny e^x
    u = np.where(x < -600, below, gammainc(shape, np.exp(x)))
    assert stats.kstest(u, "uniform").pvalue > 1e-3
