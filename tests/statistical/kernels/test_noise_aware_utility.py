"""Knowing the noise pays: the same reports, believed and seen through, on documents made from known topics."""

import functools

import numpy as np
import pytest

from tertulia.kernels import lda, noise_aware
from tertulia.kernels.reports import Channel, reports
from tertulia.kernels.reports.condense import condense

D, LENGTH, V, K = 600, 100, 1000, 8
ALPHA = 0.1


@pytest.fixture(scope="module")
def world():
    generator = np.random.default_rng(3)
    topics = generator.dirichlet(np.full(V, 0.05), K)
    theta = generator.dirichlet(np.full(K, ALPHA), 2 * D).repeat(LENGTH, axis=0)
    z = (theta.cumsum(axis=1) < generator.random((len(theta), 1))).sum(axis=1).clip(max=K - 1)
    upto, u = topics.cumsum(axis=1), generator.random(len(z))
    words = np.empty(len(z), dtype=np.int32)
    for k in range(K):
        words[z == k] = np.searchsorted(upto[k], u[z == k]).clip(max=V - 1)
    return words[: D * LENGTH], words[D * LENGTH :], np.arange(0, D * LENGTH + 1, LENGTH)


def perplexity(topic_word, words):
    """Of the second half of each document, given the first."""
    documents, p = words.reshape(D, LENGTH), topic_word.T
    theta = np.full((D, len(topic_word)), 1 / len(topic_word))
    seen, rest = p[documents[:, : LENGTH // 2]], p[documents[:, LENGTH // 2 :]]  # [D, tokens, K]
    for _ in range(30):
        share = seen * theta[:, None]
        share /= share.sum(axis=2, keepdims=True)
        theta = share.sum(axis=1) + ALPHA
        theta /= theta.sum(axis=1, keepdims=True)
    return float(np.exp(-np.log(np.einsum("dtk,dk->dt", rest, theta)).mean()))


def aware_perplexity(source, documents, held, sampler, beta=0.1, sweeps=120, phi="draw"):
    state = noise_aware.init(source, documents, V, K, ALPHA, beta, key=1)
    state, _ = noise_aware.run(source, documents, state, sweeps, 2, sampler, threads=2, phi=phi)
    return perplexity(noise_aware.topic_word(state), held)


@pytest.fixture(scope="module")
def plain(world):
    words, held, documents = world
    state, _ = lda.run(words, documents, lda.init(words, documents, V, K, ALPHA, 0.1, 1), 120, 2)
    return perplexity(lda.topic_word(state), held)


@pytest.mark.parametrize(("sampler", "sweeps"), [("dense", 120), ("mh", 120), ("warp", 240)])
def test_randomised_response_is_seen_through(world, plain, sampler, sweeps):
    words, held, documents = world
    told = reports(words, Channel("krr", 7.0, V), bytes(32), "world")
    believed, _ = lda.run(told.idx, documents, lda.init(told.idx, documents, V, K, ALPHA, 0.1, 1), 120, 2)
    naive = perplexity(lda.topic_word(believed), held)
    ours = aware_perplexity(told, documents, held, sampler, sweeps=sweeps)
    assert ours < 0.9 * naive
    assert ours < 1.25 * plain


def test_subsets_at_a_small_epsilon_with_a_prior_of_word_frequencies(world):
    words, held, documents = world
    told = reports(words, Channel("subset", 4.5, V), bytes(32), "world")
    share = (np.bincount(words, minlength=V) + 1) / (len(words) + V)
    ours = aware_perplexity(told, documents, held, "dense", beta=300 * share, sweeps=200)
    assert ours < 0.8 * np.exp(-np.log(share)[held].mean())


def test_of_laplace_reports_the_louder_entries_are_enough(world, plain):
    words, held, documents = world
    channel = Channel("laplace", 8.0, V)
    source = functools.partial(reports, words, channel, bytes(32), "world")
    told = condense(source, channel, len(words))
    assert len(told.idx) < 0.15 * channel.expected_support() * len(words)
    assert aware_perplexity(told, documents, held, "dense", sweeps=60, phi="mean") < 1.1 * plain
