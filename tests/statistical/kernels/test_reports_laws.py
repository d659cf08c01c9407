"""The laws of reports: sparse Laplace noise against dense, randomised response and subsets against enumeration.

Keys are fixed, so nothing here is left to chance; bars are those of a test at one in a thousand or stricter.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tertulia.kernels.reports import Channel, reports

KEY = bytes(range(32))
N = 200_000


def dense(channel, word, n, seed):
    """The noisy one-hot vectors [n, V], thresholded, by the definition."""
    noise = np.random.default_rng(seed).laplace(scale=1 / channel.epsilon, size=(n, channel.V))
    noise[:, word] += 1.0
    return np.where(noise > channel.threshold, noise, 0.0)


def sparse(channel, word, n):
    r = reports(np.full(n, word, dtype=np.int32), channel, KEY, "law")
    rows = np.zeros((n, channel.V))
    # Dithered over its cell: a variable rounded to the middle of a cell, within which its density hardly moves.
    dither = (np.random.default_rng(5).random(len(r.value)) - 0.5) * channel.grid
    rows[np.repeat(np.arange(n), np.diff(r.indptr)), r.idx] = r.value + dither
    return rows


@pytest.mark.parametrize(("epsilon", "tau"), [(8.0, 0.2), (2.0, 0.5), (1.0, 0.0), (11.0, 0.2)])
def test_sparse_laplace_noise_is_dense_noise(epsilon, tau):
    channel, word = Channel("laplace", epsilon, 12, tau), 4
    ours, theirs = sparse(channel, word, N), dense(channel, word, N, 2)
    for power in (1, 2):
        difference = (ours**power).mean(axis=0) - (theirs**power).mean(axis=0)
        error = np.sqrt(((ours**power).var(axis=0) + (theirs**power).var(axis=0)) / N)
        assert np.abs(difference / error).max() < 4
    counts = [(x != 0).sum(axis=1) for x in (ours, theirs)]
    table = np.array([np.bincount(c, minlength=channel.V + 1) for c in counts])
    table = table[:, table.sum(axis=0) > 20]
    assert stats.chi2_contingency(table).pvalue > 1e-3
    for w in (word, 0, channel.V - 1):
        mine, other = (x[:, w][x[:, w] != 0] for x in (ours, theirs))
        assert stats.ks_2samp(mine, other).pvalue > 1e-3
    others = np.delete(ours, word, axis=1)
    pair = np.corrcoef(others[:, 0] != 0, others[:, 1] != 0)[0, 1]
    assert abs(pair) < 4 / math.sqrt(N)  # entries are independent


def test_values_above_tau_are_exponential_and_the_own_entry_is_laplace():
    channel, word = Channel("laplace", 8.0, 2949), 7
    r = reports(np.full(20_000, word, dtype=np.int32), channel, KEY, "values")
    own = r.idx == word
    dither = (np.random.default_rng(3).random(len(r.value)) - 0.5) * channel.grid
    value = r.value + dither
    assert stats.kstest(value[~own][:200_000], "expon", (channel.threshold, 1 / 8)).pvalue > 1e-3
    above = stats.laplace(1, 1 / 8)
    low = above.cdf(channel.threshold)
    assert stats.kstest(value[own], lambda x: (above.cdf(x) - low) / (1 - low)).pvalue > 1e-3
    likely = channel.own_word_probability()
    assert own.sum() / 20_000 == pytest.approx(likely, abs=4 * math.sqrt(likely * 1e-3 / 20_000))
    places = np.bincount(r.idx[~own], minlength=2949)
    assert places[word] == 0
    assert stats.chisquare(np.delete(places, word)).pvalue > 1e-3
    sizes = np.diff(r.indptr)
    assert sizes.mean() == pytest.approx(channel.expected_support(), abs=4 * sizes.std() / math.sqrt(20_000))
    p = 0.5 * math.exp(-8 * channel.threshold)
    assert sizes.var() == pytest.approx(2948 * p * (1 - p), rel=0.05)


@pytest.mark.parametrize(
    "channel",
    [
        Channel("krr", 1.0, 2),
        Channel("krr", 0.3, 5),
        Channel("krr", 2.0, 8),
        Channel("subset", 0.5, 8),
        Channel("subset", 1.0, 7),
        Channel("subset", 0.2, 4),
    ],
)
def test_reported_words_have_the_law_of_their_channel(channel):
    word, V, m, odds = 1, channel.V, channel.m, math.exp(channel.epsilon)
    r = reports(np.full(N, word, dtype=np.int32), channel, KEY, "law")
    seen = np.bincount((1 << r.idx.astype(np.int64)).reshape(N, m).sum(axis=1), minlength=2**V)
    reported = m * odds / (m * odds + V - m)
    expected = np.zeros(2**V)
    for subset in itertools.combinations(range(V), m):
        share = reported / math.comb(V - 1, m - 1) if word in subset else (1 - reported) / math.comb(V - 1, m)
        expected[sum(1 << j for j in subset)] = share
    possible = expected > 0
    assert expected.sum() == pytest.approx(1)
    assert seen[~possible].sum() == 0
    assert stats.chisquare(seen[possible], N * expected[possible]).pvalue > 1e-3


def test_tokens_are_independent_of_their_neighbours():
    channel = Channel("krr", 1.0, 4)
    idx = reports(np.zeros(N, dtype=np.int32), channel, KEY, "law").idx
    for lag in (1, 2, 15, 16):
        table = np.bincount(4 * idx[:-lag] + idx[lag:], minlength=16).reshape(4, 4)
        assert stats.chi2_contingency(table).pvalue > 1e-3
