"""Geweke's joint distribution test (JASA 2004): is the sampler right for the model that it claims to sample?

One simulator draws topics and words from the prior. The other alternates the sampler under test, z | w, with new words
from the model, phi | z, w and then w | z, phi. Both must have the same joint distribution of (z, w): a z-score beyond 4
in any statistic is a failure. The approximation, `phi="mean"`, must fail.
"""

import numpy as np
import pytest

from tertulia.kernels import lda

BAR = 4.0
D, LENGTH, V, K = 3, 4, 3, 2
DOCUMENTS = np.arange(0, D * LENGTH + 1, LENGTH)
ALPHA, BETA = np.array([0.5, 1.0]), 0.5
STEPS, BATCHES = 20_000, 50


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
    theta = generator.dirichlet(ALPHA, size=(n, D)).repeat(LENGTH, axis=1)  # [n, tokens, K]
    z = (generator.random((n, D * LENGTH)) > theta[:, :, 0]).astype(np.int32)
    phi = generator.dirichlet(np.full(V, BETA), size=(n, K))
    return words_given(phi[np.arange(n)[:, None], z], generator), z


def words_given(phi_of_tokens, generator):
    u = generator.random((*phi_of_tokens.shape[:-1], 1))
    return (phi_of_tokens.cumsum(axis=-1) < u).sum(axis=-1).clip(max=V - 1).astype(np.int32)


def from_sampler(sampler, phi, generator):
    words, z = (x[0] for x in from_prior(1, generator))
    kept = np.empty((STEPS, 2, D * LENGTH), dtype=np.int32)
    for t in range(STEPS):
        cwk = np.zeros((V, K), dtype=np.int32)
        state = lda.LDAState(z, cwk, cwk.sum(axis=0), ALPHA, BETA)  # the counts follow from z
        state, _ = lda.run(words, DOCUMENTS, state, 1, t, sampler, phi=phi)
        z = state.z
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
        words = words_given(topics[z], generator)
        kept[t] = words, z
    return kept[:, 0], kept[:, 1]


def z_scores(sampler, phi):
    truth = statistics(*from_prior(400_000, np.random.default_rng(1)))
    chain = statistics(*from_sampler(sampler, phi, np.random.default_rng(2)))
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = batches.var(axis=0, ddof=1) / BATCHES + truth.var(axis=0) / len(truth)
    return (chain.mean(axis=0) - truth.mean(axis=0)) / np.sqrt(error)


@pytest.mark.parametrize("sampler", ["gibbs", "dense"])
def test_samplers_pass(sampler):
    assert np.abs(z_scores(sampler, "draw")).max() < BAR


def test_the_approximation_is_caught():
    assert np.abs(z_scores("dense", "mean")).max() > BAR
