"""What reports cost: known values, and subset selection by enumeration."""

import itertools
import math

import numpy as np
import pytest

from tertulia.errors import ConfigError
from tertulia.kernels.reports import Channel
from tertulia.privacy.accounting import cost, guarantee_of
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.token_reports import TokenReports, ftm_claim
from tertulia.privacy.releases import Release

SUBSTITUTE, NULL_REPLACE = Adjacency.SUBSTITUTE, Adjacency.NULL_REPLACE


def release(mechanism):
    return Release.of(
        mechanism, id="a", party="north", round=1, step="m:s", verb="gather", message_hash="", x=np.zeros(1, int)
    )


@pytest.mark.parametrize(
    ("channel", "adjacency", "token", "document"),
    [
        (Channel("krr", 8.0, 2949), SUBSTITUTE, 8.0, 687),
        (Channel("krr", 4.0, 2949), SUBSTITUTE, 4.0, 47.5),
        (Channel("laplace", 8.0, 2949), SUBSTITUTE, 16.0, 1791),
        (Channel("laplace", 8.0, 2949), NULL_REPLACE, 8.0, 913),
        (Channel("laplace", 11.0, 2949), SUBSTITUTE, 22.0, 2511),
        (Channel("laplace", 11.0, 2949), NULL_REPLACE, 11.0, 1273),
    ],
)
def test_reports_cost_the_known_values(channel, adjacency, token, document):
    record = release(TokenReports("counts", channel=channel, adjacency=adjacency, claimed=ftm_claim(channel)))
    assert Release.from_json(record.to_json()) == record
    assert cost([record], Unit.TOKEN, adjacency, 0.0).epsilon == pytest.approx(token)
    bounds = Bounds(tokens_per_document=120)
    whole = cost([record], Unit.DOCUMENT, adjacency, 1e-6, bounds)
    assert whole.epsilon == pytest.approx(document, rel=3e-3)
    assert "a document holds at most 120 tokens" in whole.assumptions
    assert guarantee(channel, adjacency, 1e-6, 120).epsilon == pytest.approx(whole.epsilon)


def guarantee(channel, adjacency, delta=0.0, tokens=1):
    return guarantee_of(TokenReports("reports", channel=channel, adjacency=adjacency), delta, tokens)


def subset_pmf(channel, word):
    """P(report | word), or | null, of every subset, by the definition."""
    V, m, odds = channel.V, channel.m, math.exp(channel.epsilon)
    named = m * odds / (m * odds + V - m)
    for chosen in itertools.combinations(range(V), m):
        if word is None:
            yield 1 / math.comb(V, m)
        else:
            yield named / math.comb(V - 1, m - 1) if word in chosen else (1 - named) / math.comb(V - 1, m)


@pytest.mark.parametrize("channel", [Channel("subset", 1.0, 8), Channel("subset", 0.5, 7), Channel("subset", 2.5, 8)])
@pytest.mark.parametrize("adjacency", [SUBSTITUTE, NULL_REPLACE])
def test_subset_selection_costs_its_own_loss_distribution(channel, adjacency):
    p = np.array(list(subset_pmf(channel, 0)))
    q = np.array(list(subset_pmf(channel, 1 if adjacency is SUBSTITUTE else None)))
    assert p.sum() == pytest.approx(1)
    pure = np.abs(np.log(p / q)).max()
    assert guarantee(channel, adjacency).epsilon == pytest.approx(pure)
    for delta in (0.02, 0.1, 0.2):
        epsilon = guarantee(channel, adjacency, delta).epsilon
        worst = max(np.maximum(x - np.exp(epsilon) * y, 0).sum() for x, y in ((p, q), (q, p)))
        assert worst == pytest.approx(delta, abs=2e-4) or (worst <= delta and epsilon < 1e-3)


def test_substitution_says_nothing_of_the_null():
    record = release(TokenReports("counts", channel=Channel("krr", 8.0, 100)))
    assert cost([record], Unit.TOKEN, NULL_REPLACE, 0.0).epsilon == math.inf
    assert cost([record], Unit.DOCUMENT, SUBSTITUTE, 1e-6).epsilon == math.inf  # no limit of tokens is declared


def test_what_reports_cannot_promise_is_refused():
    channel = Channel("krr", 8.0, 100)
    with pytest.raises(ConfigError, match="add-remove"):
        TokenReports("counts", channel=channel, adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(ConfigError, match="unit"):
        TokenReports("counts", channel=channel, unit=Unit.DOCUMENT)


def test_the_mechanism_says_what_it_is():
    m = TokenReports("counts", channel=Channel("subset", 6.0, 2949))
    assert m.params() == {"channel": "subset", "epsilon": 6.0, "words": 2949, "told": 7}
    assert m.local
    assert TokenReports("counts", channel=Channel("laplace", 8.0, 2949)).sensitivity == 2
