"""Minka's fixed point: equal to its digamma form, and able to find the prior that made the counts."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import digamma

from tertulia.kernels import lda
from tertulia.kernels.lda import priors
from tertulia.kernels.lda.options import Learning


def corpus_of_topics(alpha, lengths, seed):
    """Topics z drawn document by document from Dirichlet(alpha), with offsets."""
    generator = np.random.default_rng(seed)
    theta = generator.dirichlet(alpha, size=len(lengths))
    z = [generator.choice(len(alpha), size=n, p=p) for n, p in zip(lengths, theta, strict=True)]
    return np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(z).astype(np.int32)


@pytest.mark.parametrize("seed", range(3))
def test_recovers_a_known_alpha(seed):
    alpha = np.array([0.05, 0.2, 0.4, 1.2])
    documents, z = corpus_of_topics(alpha, np.random.default_rng(seed).integers(20, 120, size=3_000), seed)
    learned = priors.learn_alpha(documents, z, np.full(4, 0.5))
    assert np.allclose(learned, alpha, rtol=0.12)


def test_recovers_a_known_symmetric_alpha_as_one_number():
    documents, z = corpus_of_topics(np.full(5, 0.3), np.full(3_000, 60), 1)
    learned = priors.learn_alpha(documents, z, np.array([2.0, 0.1, 0.1, 0.1, 0.1]), symmetric=True)
    assert np.ptp(learned) == 0.0
    assert learned[0] == pytest.approx(0.3, rel=0.05)


def test_one_step_equals_minkas_formula():
    """With the one that an exponential prior of rate 1 adds to the cost."""
    alpha = np.array([0.3, 0.9, 0.1])
    lengths = np.array([0, 5, 1, 30])
    documents, z = corpus_of_topics(np.ones(3), lengths, 2)
    cdk = np.stack([np.bincount(z[a:b], minlength=3) for a, b in pairwise(documents)])
    gain = (digamma(cdk + alpha) - digamma(alpha)).sum(axis=0)
    cost = (digamma(lengths + alpha.sum()) - digamma(alpha.sum())).sum()
    assert np.allclose(priors.learn_alpha(documents, z, alpha, iterations=1), alpha * gain / (cost + 1.0))


@pytest.mark.parametrize("beta", [0.01, 0.2])
def test_recovers_a_known_beta(beta):
    generator = np.random.default_rng(3)
    phi = generator.dirichlet(np.full(1_000, beta), size=20)  # [K, V]
    cwk = generator.multinomial(5_000, phi).T.astype(np.int32)
    assert priors.learn_beta(cwk, cwk.sum(axis=0, dtype=np.int64), 0.05) == pytest.approx(beta, rel=0.08)


def test_nothing_to_learn_from_leaves_the_priors_alone():
    none = np.array([], dtype=np.int32)
    assert np.array_equal(priors.learn_alpha(np.array([0, 0, 0]), none, np.array([0.2, 0.4])), [0.2, 0.4])
    assert priors.learn_beta(np.zeros((3, 2), np.int32), np.zeros(2, np.int64), 0.3) == 0.3


def test_a_run_learns_alpha_and_beta():
    generator = np.random.default_rng(4)
    phi = generator.dirichlet(np.full(150, 0.1), size=4)
    documents, z = corpus_of_topics(np.array([0.1, 0.1, 0.1, 1.0]), np.full(800, 60), 5)
    words = (phi.cumsum(axis=1)[z] < generator.random(len(z))[:, None]).sum(axis=1).clip(max=149)
    state = lda.init_from_topics(words, documents, phi, alpha=2.0, beta=1.0, key=1)  # in the right mode: see recovery
    state, _ = lda.run(words, documents, state, 100, 2, learning=Learning(True, True))
    assert state.alpha.sum() == pytest.approx(1.3, rel=0.25)
    assert state.alpha.max() / state.alpha.sum() > 0.6
    assert state.beta == pytest.approx(0.1, rel=0.25)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("tokens", [1, 2, 50, 100_000])
def test_one_document_leaves_alpha_within_bounds(tokens, symmetric):
    """Its likelihood has no best alpha: the prior of alpha bounds it."""
    for z in (np.zeros(tokens, np.int32), np.arange(tokens, dtype=np.int32) % 4):
        seen = priors.histograms(np.array([0, tokens]), z, 4)
        for first in (1e-3, 1.0, 1e3):
            learned = priors.fit_alpha(seen, np.full(4, first), symmetric, iterations=5_000)
            assert np.isfinite(learned).all()
            assert learned.min() >= 1e-6
            assert learned.sum() < 50


def test_the_alpha_of_one_document_does_not_depend_on_the_first_guess():
    seen = priors.histograms(np.array([0, 40]), np.repeat(np.arange(2, dtype=np.int32), 20), 2)
    low, high = (priors.fit_alpha(seen, np.full(2, x), iterations=5_000, tolerance=1e-9) for x in (0.01, 100.0))
    assert np.allclose(low, high, rtol=1e-3)
