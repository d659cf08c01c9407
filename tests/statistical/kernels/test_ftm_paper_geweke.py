"""Geweke's joint distribution test of SentenceLDA: the prior against sampler and model in turn (see the LDA test).

A z-score beyond 4 in any statistic is a failure, and `phi="mean"` must fail. The papers' stale tables are not judged
here: they are off by less than these statistics feel (1.4 at most), and by more than enumeration does.
"""

from functools import cache

import numpy as np
import pytest

from helpers.geweke import BAR, draw, worst_score
from helpers.marks import slow
from tertulia.kernels import lda
from tertulia.kernels.ftm_paper import sentence

D, S, LENGTH, V, K = 3, 3, 2, 3, 2  # documents, their sentences, and the words of these
SENTENCES, DOCUMENTS = np.arange(0, D * S * LENGTH + 1, LENGTH), np.arange(0, D * S * LENGTH + 1, S * LENGTH)
ALPHA, BETA = np.array([0.5, 1.0]), 0.5
STEPS, MANY = 3_000, 20_000  # worth 180 and 1200 independent ones


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
    z = draw(generator.dirichlet(ALPHA, size=(n, D)).repeat(S, axis=1), generator).astype(np.int32)
    phi = generator.dirichlet(np.full(V, BETA), size=(n, K))
    return draw(phi[np.arange(n)[:, None], z.repeat(LENGTH, axis=1)], generator).astype(np.int32), z


def from_sampler(generator, steps, alpha=ALPHA, **settings):
    words, z = (x[0] for x in from_prior(1, generator))
    kept = []
    for t in range(steps):
        state = lda.LDAState(z, np.zeros((V, K), dtype=np.int32), np.zeros(K, dtype=np.int64), alpha, BETA)
        state, _ = sentence.run(words, SENTENCES, DOCUMENTS, state, 1, t, **settings)
        z = state.z
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
        words = draw(topics[z.repeat(LENGTH)], generator).astype(np.int32)
        kept.append((words, z))
    return (np.stack(column) for column in zip(*kept, strict=True))


@cache
def truth():
    return statistics(*from_prior(100_000, np.random.default_rng(1)))


def score(steps=STEPS, **settings):
    return worst_score(truth(), statistics(*from_sampler(np.random.default_rng(2), steps, **settings)))


@pytest.mark.parametrize("steps", [STEPS, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", [slow({"sampler": "gibbs"}), {"sampler": "mh", "proposals": "fresh"}])
def test_samplers_pass(settings, steps):
    assert score(steps, **settings) < BAR


def test_another_prior_is_caught():
    assert score(sampler="gibbs", alpha=3 * ALPHA) > BAR


@pytest.mark.slow
def test_the_approximation_is_caught():
    assert score(MANY, sampler="gibbs", phi="mean") > BAR
