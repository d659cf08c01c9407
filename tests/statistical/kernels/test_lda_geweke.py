"""Geweke's joint distribution test of LDA's exact samplers. Another prior must fail it, and `phi="mean"` must."""

from functools import cache

import numpy as np
import pytest

from helpers.geweke import BAR, draw, worst_score
from helpers.marks import slow
from tertulia.kernels import lda

D, LENGTH, V, K = 3, 4, 3, 2
DOCUMENTS = np.arange(0, D * LENGTH + 1, LENGTH)
ALPHA, BETA = np.array([0.5, 1.0]), 0.5
STEPS, MANY = 4_000, 20_000  # worth 400 and 2000 independent ones or more


def statistics(words, z):
    """Of each of n data sets [n, D * LENGTH]: counts, their squares and how words and topics go together."""
    first = (z == 0).reshape(-1, D, LENGTH).sum(axis=2)
    cells = np.stack([((words == w) & (z == k)).sum(axis=1) for w in range(V) for k in range(K)], axis=1)
    return np.column_stack(
        [
            first.sum(axis=1),
            (first**2).sum(axis=1),
            first[:, 0] * first[:, 1],
            (cells**2).sum(axis=1),
            cells[:, 0],
            cells[:, 0] * cells[:, 3],
            (cells == 0).sum(axis=1),
            (words == 0).sum(axis=1) ** 2,
        ]
    ).astype(float)


def from_prior(n, generator):
    z = draw(generator.dirichlet(ALPHA, size=(n, D)).repeat(LENGTH, axis=1), generator).astype(np.int32)
    phi = generator.dirichlet(np.full(V, BETA), size=(n, K))
    return draw(phi[np.arange(n)[:, None], z], generator).astype(np.int32), z


def from_sampler(sampler, phi, steps, generator, alpha=ALPHA):
    words, z = (x[0] for x in from_prior(1, generator))
    kept = np.empty((steps, 2, D * LENGTH), dtype=np.int32)
    for t in range(steps):
        cwk = np.zeros((V, K), dtype=np.int32)
        state = lda.LDAState(z, cwk, cwk.sum(axis=0), alpha, BETA)  # the counts follow from z
        state, _ = lda.run(words, DOCUMENTS, state, 1, t, sampler, phi=phi)
        z = state.z
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
        words = draw(topics[z], generator).astype(np.int32)
        kept[t] = words, z
    return kept[:, 0], kept[:, 1]


@cache
def truth():
    return statistics(*from_prior(100_000, np.random.default_rng(1)))


def score(sampler, phi="draw", steps=STEPS, alpha=ALPHA):
    return worst_score(truth(), statistics(*from_sampler(sampler, phi, steps, np.random.default_rng(2), alpha)))


@pytest.mark.parametrize("steps", [STEPS, slow(MANY)])
@pytest.mark.parametrize("sampler", ["gibbs", "sparse"])
def test_samplers_pass(sampler, steps):
    assert score(sampler, steps=steps) < BAR


def test_another_prior_is_caught():
    assert score("gibbs", alpha=3 * ALPHA) > BAR


@pytest.mark.slow
def test_the_approximation_is_caught():
    assert score("sparse", "mean", MANY) > BAR
