"""Geweke's joint distribution test of SentenceLDA: the prior against sampler and model in turn (see the LDA test).

A z-score beyond 4 in any statistic is a failure, and `phi="mean"` must fail. The papers' stale tables are not judged
here: they are off by less than these statistics feel (1.4 at most), and by more than enumeration does.
"""

import numpy as np
import pytest

from tertulia.kernels import lda
from tertulia.kernels.ftm_paper import sentence

BAR = 4.0
D, S, LENGTH, V, K = 3, 3, 2, 3, 2  # documents, their sentences, and the words of these
SENTENCES, DOCUMENTS = np.arange(0, D * S * LENGTH + 1, LENGTH), np.arange(0, D * S * LENGTH + 1, S * LENGTH)
ALPHA, BETA = np.array([0.5, 1.0]), 0.5
STEPS, BATCHES = 20_000, 50


def statistics(words, z):
    """Of each of n data sets: counts, their squares and how words and topics go together."""
    of_tokens = z.repeat(LENGTH, axis=1)
    first = (z == 0).reshape(-1, D, S).sum(axis=2)
    cells = np.stack([((words == w) & (of_tokens == k)).sum(axis=1) for w in range(V) for k in range(K)], axis=1)
    alike = (words[:, ::2] == words[:, 1::2]).sum(axis=1)
    columns = [first.sum(axis=1), (first**2).sum(axis=1), first[:, 0] * first[:, 1], (cells**2).sum(axis=1)]
    columns += [cells[:, 0], cells[:, 0] * cells[:, 3], (cells == 0).sum(axis=1), (words == 0).sum(axis=1) ** 2, alike]
    return np.column_stack(columns).astype(float)


def from_prior(n, generator):
    theta = generator.dirichlet(ALPHA, size=(n, D)).repeat(S, axis=1)  # [n, sentences, K]
    z = (generator.random((n, D * S)) > theta[:, :, 0]).astype(np.int32)
    phi = generator.dirichlet(np.full(V, BETA), size=(n, K))
    return words_given(phi[np.arange(n)[:, None], z.repeat(LENGTH, axis=1)], generator), z


def words_given(phi_of_tokens, generator):
    u = generator.random((*phi_of_tokens.shape[:-1], 1))
    return (phi_of_tokens.cumsum(axis=-1) < u).sum(axis=-1).clip(max=V - 1).astype(np.int32)


def from_sampler(generator, **settings):
    words, z = (x[0] for x in from_prior(1, generator))
    kept = []
    for t in range(STEPS):
        state = lda.LDAState(z, np.zeros((V, K), dtype=np.int32), np.zeros(K, dtype=np.int64), ALPHA, BETA)
        state, _ = sentence.run(words, SENTENCES, DOCUMENTS, state, 1, t, **settings)
        z = state.z
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
        words = words_given(topics[z.repeat(LENGTH)], generator)
        kept.append((words, z))
    return (np.stack(column) for column in zip(*kept, strict=True))


def z_scores(**settings):
    truth = statistics(*from_prior(400_000, np.random.default_rng(1)))
    chain = statistics(*from_sampler(np.random.default_rng(2), **settings))
    batches = chain.reshape(BATCHES, -1, chain.shape[1]).mean(axis=1)
    error = batches.var(axis=0, ddof=1) / BATCHES + truth.var(axis=0) / len(truth)
    return (chain.mean(axis=0) - truth.mean(axis=0)) / np.sqrt(error)


@pytest.mark.parametrize("settings", [{"sampler": "gibbs"}, {"sampler": "mh", "proposals": "fresh"}])
def test_samplers_pass(settings):
    assert np.abs(z_scores(**settings)).max() < BAR


def test_the_approximation_is_caught():
    assert np.abs(z_scores(sampler="gibbs", phi="mean")).max() > BAR
