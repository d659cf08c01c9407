"""Geweke's joint distribution test for the noise-aware samplers, through the real channels.

One simulator draws topics, words and reports from the prior. The other alternates the sampler under test with new words
and new reports, given its topics. Both must have the same joint distribution of topics and reported words. A sampler
that takes nearly every reported word for true must fail.
"""

from functools import cache

import numpy as np
import pytest

from helpers.geweke import BAR, draw, reported_words, worst_score
from tertulia.kernels import noise_aware
from tertulia.kernels.reports import Channel, reports

D, LENGTH, V, K = 3, 4, 4, 2
N = D * LENGTH
DOCUMENTS = np.arange(0, N + 1, LENGTH)
ALPHA, BETA = np.array([0.5, 1.0]), 0.5
STEPS = 2_000  # worth 420 independent ones or more; a sampler that believes its reports has a score of 5.0 then
CHANNELS = {
    "laplace": Channel("laplace", 2.0, V, tau=0.2),
    "krr": Channel("krr", 2.0, V),
    "subset": Channel("subset", 0.5, V),
}


def statistics(reported, z):
    """Of each of n data sets, reported words [n, N, V] and topics [n, N]."""
    first = (z == 0).reshape(-1, D, LENGTH).sum(axis=2)
    cells = np.stack([(reported[:, :, w] & (z == k)).sum(axis=1) for w in range(V) for k in range(K)], axis=1)
    columns = [
        first.sum(axis=1),
        (first**2).sum(axis=1),
        first[:, 0] * first[:, 1],
        (cells**2).sum(axis=1),
        cells[:, 0],
        cells[:, 0] * cells[:, 3],
        (reported[:, :, 0].sum(axis=1)) ** 2,
        (reported[:, 0] & reported[:, 1]).sum(axis=1),
    ]
    return np.column_stack(columns).astype(float)


def from_prior(channel, n, generator):
    theta = generator.dirichlet(ALPHA, size=(n, D)).repeat(LENGTH, axis=1)
    z = draw(theta, generator)
    phi = generator.dirichlet(np.full(V, BETA), size=(n, K))
    words = draw(phi[np.arange(n)[:, None], z], generator)
    r = reports(words.ravel().astype(np.int32), channel, bytes(32), f"prior {n}")
    return reported_words(r, n * N, V)[0].reshape(n, N, V), z


def full_topics(z, generator):
    """Topics for background tokens, too, by Polya's urn."""
    z = z.copy()
    for d in range(D):
        mine = z[d * LENGTH : (d + 1) * LENGTH]
        for i in np.flatnonzero(mine < 0):
            mine[i] = draw(np.array([(mine == k).sum() + ALPHA[k] for k in range(K)]), generator)
    return z


def from_sampler(channel, sampler, belief, steps, generator):
    z = from_prior(channel, 1, generator)[1][0]
    topics = generator.dirichlet(np.full(V, BETA), size=K)
    reported, kept = np.empty((steps, N, V), dtype=bool), np.empty((steps, N), dtype=np.int64)
    for t in range(steps):
        words = draw(topics[z], generator).astype(np.int32)
        r = reports(words, channel, bytes(32), f"{t} {sampler}")
        reported[t], a = reported_words(r, N, V)
        options = np.column_stack([np.full(N, r.r0), a * topics[z]])
        word = (draw(options, generator) - 1).astype(np.int32)
        start = np.where(word >= 0, z, -1).astype(np.int32)
        state = noise_aware.AwareState(start, word, np.zeros((V, K), np.int32), np.zeros(K, np.int64), ALPHA, BETA)
        state, _ = noise_aware.run(r._replace(r0=r.r0 * belief), DOCUMENTS, state, 1, t, sampler)
        z = kept[t] = full_topics(state.z, generator)
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
    return reported, kept


@cache
def truth(name):
    return statistics(*from_prior(CHANNELS[name], 50_000, np.random.default_rng(1)))


def score(name, sampler, belief=1.0, steps=STEPS):
    chain = from_sampler(CHANNELS[name], sampler, belief, steps, np.random.default_rng(2))
    return worst_score(truth(name), statistics(*chain))


CASES = [("laplace", "gibbs"), ("laplace", "dense"), ("subset", "dense"), ("krr", "mh")]


@pytest.mark.parametrize(("name", "sampler"), [case for case in CASES if case[0] != "laplace"])
def test_samplers_pass(name, sampler):
    assert score(name, sampler) < BAR


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sampler"), CASES)
def test_samplers_pass_in_long_chains(name, sampler):
    assert score(name, sampler, steps=12_000) < BAR


def test_wrong_beliefs_are_caught():
    assert score("krr", "gibbs", belief=0.02) > BAR
