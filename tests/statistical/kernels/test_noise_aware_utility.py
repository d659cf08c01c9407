"""Knowing the noise pays: the same reports, believed and seen through, on documents made from known topics."""

import functools

import numpy as np
import pytest

from helpers.planted import completion_perplexity, planted
from tertulia.kernels import lda, noise_aware
from tertulia.kernels.reports import Channel, reports
from tertulia.kernels.reports.preparation import condense

D, LENGTH, V, K = 600, 100, 1000, 8
ALPHA = 0.1


@pytest.fixture(scope="module")
def world():
    corpus = planted(3, 2 * D, LENGTH, V, K, ALPHA)
    (words, documents), (held, _) = corpus.split(D)
    return words, held, documents


def aware_perplexity(source, documents, held, sampler, beta=0.1, sweeps=120, phi="draw", key=1):
    state = noise_aware.init(source, documents, V, K, ALPHA, beta, key=key)
    state, _ = noise_aware.run(source, documents, state, sweeps, key + 1, sampler, threads=2, phi=phi)
    return completion_perplexity(held, documents, noise_aware.topic_word(state), ALPHA)


@pytest.fixture(scope="module")
def plain(world):
    words, held, documents = world
    state, _ = lda.run(words, documents, lda.init(words, documents, V, K, ALPHA, 0.1, 1), 120, 2)
    return completion_perplexity(held, documents, lda.topic_word(state), ALPHA)


@pytest.mark.parametrize(("sampler", "sweeps"), [("dense", 120), ("mh", 120), ("warp", 240)])
def test_randomised_response_is_seen_through(world, plain, sampler, sweeps):
    words, held, documents = world
    reported = reports(words, Channel("krr", 7.0, V), bytes(32), "world")
    believed, _ = lda.run(reported.idx, documents, lda.init(reported.idx, documents, V, K, ALPHA, 0.1, 1), 120, 2)
    naive = completion_perplexity(held, documents, lda.topic_word(believed), ALPHA)
    ours = aware_perplexity(reported, documents, held, sampler, sweeps=sweeps)
    assert ours < 0.9 * naive
    assert ours < 1.25 * plain


@pytest.mark.slow
def test_subsets_at_a_small_epsilon_with_a_prior_of_word_frequencies(world):
    words, held, documents = world
    reported = reports(words, Channel("subset", 4.5, V), bytes(32), "world")
    share = (np.bincount(words, minlength=V) + 1) / (len(words) + V)
    ours = aware_perplexity(reported, documents, held, "dense", beta=300 * share, sweeps=200)
    assert ours < 0.8 * np.exp(-np.log(share)[held].mean())


def test_of_laplace_reports_the_louder_entries_are_enough(world, plain):
    words, held, documents = world
    channel = Channel("laplace", 8.0, V)
    source = functools.partial(reports, words, channel, bytes(32), "world")
    reported = condense(source, channel, len(words))
    assert len(reported.idx) < 0.15 * channel.expected_support() * len(words)
    # the median: after 60 sweeps three or four chains of ten, of collapsed Gibbs as well, are in another mode still
    ours = [aware_perplexity(reported, documents, held, "dense", sweeps=60, phi="mean", key=key) for key in range(1, 6)]
    assert np.median(ours) < 1.1 * plain
