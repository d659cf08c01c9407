"""Phi from counts: the moments of its posterior, topics without tokens, and the mean."""

import numpy as np
import pytest
from scipy import stats

from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda.phi import draw_phi, mean_phi

CWK = np.array([[5, 0, 0], [2, 0, 1], [0, 0, 30], [1, 0, 4]], dtype=np.int32)
CK = CWK.sum(axis=0, dtype=np.int64)


@pytest.mark.parametrize("beta", [0.1, 1.0, 2.5])
def test_draws_have_the_posterior_moments_and_sum_to_one(beta):
    n = 20_000
    draws = np.stack([draw_phi(CWK, CK, beta, derive(1, i), threads=1)[:, :3] for i in range(n)])
    assert np.allclose(draws.sum(axis=1), 1.0, atol=1e-5)
    mean = (CWK + beta) / (CK + 4 * beta)
    variance = mean * (1 - mean) / (CK + 4 * beta + 1)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 4.5 * np.sqrt(variance / n))
    assert np.allclose(draws.var(axis=0), variance, rtol=0.1)


def test_a_topic_without_tokens_is_drawn_from_the_prior_however_small_beta_is():
    beta, n = 0.001, 4_000  # V beta = 0.004: half of the topics' sums are below 1e-75
    draws = np.stack([draw_phi(CWK, CK, beta, derive(2, i), threads=1)[:, 1] for i in range(n)])
    assert np.allclose(draws.sum(axis=1), 1.0, atol=1e-6)
    favourites = np.bincount(draws.argmax(axis=1), minlength=4)
    assert stats.chisquare(favourites).pvalue > 1e-3
    shared = (draws.max(axis=1) < 0.99).mean()  # nearly all mass on one word
    assert shared < 0.05


def test_threads_do_not_change_a_bit():
    generator = np.random.default_rng(0)
    cwk = generator.poisson(0.5, size=(3_000, 7)).astype(np.int32)
    ck = cwk.sum(axis=0, dtype=np.int64)
    one, two, four = (draw_phi(cwk, ck, 0.01, derive(3), threads) for threads in (1, 2, 4))
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)


def test_mean_and_padding():
    phi = mean_phi(CWK, CK, 0.01)
    assert phi.dtype == np.float32
    assert np.allclose(phi[:, :3], (CWK + 0.01) / (CK + 0.04), rtol=1e-6)
    assert not phi[:, 3:].any()
