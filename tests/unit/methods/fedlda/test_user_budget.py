"""A user's total epsilon: never exceeded, divided by a public rule, and refused where it is too small."""

import itertools
import math

import numpy as np
import pytest

import tertulia as tt
from helpers.attacks_noise import STRICT, WORDS, ask, corpus_of, party
from tertulia.errors import ConfigError
from tertulia.kernels.reports.channel import Channel
from tertulia.methods.fedlda import method as fedlda
from tertulia.methods.fedlda import user_budget
from tertulia.methods.fedlda.settings import FedLDASettings, UserSettings
from tertulia.methods.fedlda.user_budget import LEAST, Total, information, reports_of_user
from tertulia.privacy.accounting import guarantee_of
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.mechanisms.token_reports import UserReports

DELTA = 1e-6
PUBLIC = {"mode": "public", "words": WORDS}


def settings(total, **more):
    return UserSettings(mode="sound", user_epsilon=total, **more)


def law(channel):
    """P(set | word) by enumeration, [V, sets]."""
    sets = list(itertools.combinations(range(channel.V), channel.m))
    weights = np.array([[math.exp(channel.epsilon) if w in one else 1.0 for one in sets] for w in range(channel.V)])
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("total", "more"),
    [
        (300.0, {"channel": "krr", "max_words": 40}),
        (40.0, {"user_documents": 3}),
        (8.0, {}),
        (60.0, {"user_delta": 1e-9}),
    ],
)
def test_the_accountants_total_is_the_given_one_and_hardly_less(total, more):
    given = settings(total, **more)
    found = reports_of_user(given, 2616)
    documents, delta = given.user_documents, given.user_delta
    assert found.tokens <= given.max_words
    assert guarantee_of(found, delta, documents).epsilon <= total
    larger = Channel(found.channel.kind, found.channel.epsilon + 0.05, 2617)
    assert guarantee_of(UserReports("more", channel=larger, tokens=found.tokens), delta, documents).epsilon > total


def test_the_composition_is_that_of_the_exact_law():
    for channel, reports, epsilon in ((Channel("subset", 1.3, 6), 2, 0.7), (Channel("krr", 2.0, 5), 3, 2.5)):
        of_one, of_other = law(channel)[:2]
        for _ in range(reports - 1):
            of_one, of_other = (np.outer(p, law(channel)[w]).ravel() for w, p in ((0, of_one), (1, of_other)))
        exact = np.maximum(of_one - math.exp(epsilon) * of_other, 0).sum()
        assert user_budget._excess(channel, reports, epsilon) == pytest.approx(exact, rel=1e-9)
    assert user_budget._excess(Channel("krr", 2.0, 5), 3, 6.0) == 0.0


def test_the_information_of_a_report_is_that_of_its_law():
    for channel in (Channel("subset", 0.8, 6), Channel("krr", 3.0, 6)):
        p = law(channel)
        assert information(channel) == pytest.approx((p * np.log(p / p.mean(axis=0))).sum() / channel.V)


def test_the_cap_has_the_most_information_of_pairs():
    total = Total(60.0, DELTA, 1, 40, math.inf)
    found = reports_of_user(settings(60.0, max_words=40), 400)

    def worth(cap):
        epsilon = user_budget._largest(total, "subset", 401, cap) / 100
        return cap * (cap - 1) * information(Channel("subset", epsilon, 401)) ** 2 if epsilon >= LEAST else 0.0

    assert found.tokens == max(range(2, 41), key=worth)
    assert 2 < found.tokens < 40


def test_an_epsilon_beside_it_limits_a_report():
    free, limited = (reports_of_user(settings(60.0, epsilon=own), 400) for own in (None, 3.0))
    assert free.channel.epsilon > 3.0 >= limited.channel.epsilon
    assert limited.tokens > free.tokens
    own = settings(60.0).limit_epsilon(3.0)  # a shard's own
    assert reports_of_user(own, 400) == limited
    config = FedLDASettings(mode="sound", user_epsilon=60.0, vocabulary=PUBLIC)
    assert (config.with_own_epsilon(3.0).epsilon, config.with_own_epsilon(3.0).user_epsilon) == (3.0, 60.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user_epsilon": 1.0}, r"user_epsilon = 1 is too small to learn topics from.*give 2 or more"),
        ({"user_epsilon": 7.0, "user_documents": 4}, "give 8 or more"),
        ({"user_epsilon": 50.0, "epsilon": 0.5}, "epsilon = 0.5 of a report is too small"),
        ({"user_epsilon": 50.0, "max_words": 1}, "topics are learned from pairs of words, so give 2 or more"),
        ({"user_epsilon": 50.0, "max_words": 0}, "max_words = 0"),
        ({"user_epsilon": 50.0, "user_delta": 1.0}, "user_delta = 1.0"),
        ({"user_epsilon": 50.0, "mode": "paper"}, "user_epsilon is for mode 'sound'"),
        ({"user_epsilon": 50.0, "mode": "clear"}, "user_epsilon is for mode 'sound'"),
        ({}, "an epsilon goes with mode"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_spent(given, said):
    words = {"vocabulary": PUBLIC, "topics": 2, "rounds": 1}
    with pytest.raises(ConfigError, match=said):
        tt.FedLDA(**{"mode": "sound", **words, **given}).fit({"north": ["ache burn"] * 20}, heldout=0)


def test_a_total_needs_a_public_word_list():
    private = {"mode": "private", "epsilon": 1.0}
    with pytest.raises(ValueError, match=r"set vocabulary\.mode = 'public'"):
        FedLDASettings(mode="sound", user_epsilon=50.0, vocabulary=private)


def shard(directory, corpus, policy=STRICT, **given):
    """What a shard answers to the first question, and its host."""
    config = FedLDASettings(topics=2, mode="sound", vocabulary=PUBLIC, **given)
    host = party(directory, corpus, methods=(fedlda.__name__,), policy=policy)
    broadcast = fedlda.Broadcast(WORDS, config.part(UserSettings), np.zeros((2, len(WORDS))), 0)
    return ask(host, fedlda.count_reports, broadcast), host


def spent(host, unit=Unit.USER):
    return host.ledger.cost(unit, Adjacency.SUBSTITUTE, DELTA, bounds=host.policy.bounds).epsilon


@pytest.mark.parametrize(("users", "documents"), [(None, 1), (["ann", "ann", "ben", "cleo"] * 2, 4)])
def test_the_ledgers_total_of_a_user_is_at_most_the_given_one(users, documents, tmp_path):
    corpus = corpus_of(["ache burn cold dose fever " * 4] * 8, list("abcdefgh"), users)
    answer, host = shard(tmp_path / "north", corpus, user_epsilon=24.0, user_documents=documents)
    assert answer.kind == "ok", answer.text
    assert 20.0 < spent(host) <= 24.0
    reports = next(release for release in host.ledger.releases() if release.charges)
    assert reports.params["tokens"] < 20
    assert len(host.answers.state.latest.z) == 8 * reports.params["tokens"]  # no document has more reports


@pytest.mark.parametrize(
    ("users", "given", "said"),
    [
        (["ann"] * 5 + ["ben"] * 5, {}, "rule 'max_documents_per_user': a user has 5 documents"),
        (None, {"user_delta": 0.1}, "user_delta = 0.1 is not below 1 / 10"),
        (None, {"user_delta": 0.2}, "give a smaller one"),
    ],
)
def test_a_shard_that_does_not_fit_the_total_reports_nothing(users, given, said, tmp_path):
    corpus = corpus_of(["ache burn cold"] * 10, [str(i) for i in range(10)], users)
    answer, host = shard(tmp_path / "north", corpus, user_epsilon=24.0, **given)
    assert answer.kind in ("refused", "failed")
    assert said in answer.text
    assert host.ledger.releases() == []


def test_the_policys_cap_on_documents_of_a_user_makes_room(tmp_path):
    corpus = corpus_of(["ache burn cold"] * 10, [str(i) for i in range(10)], ["ann"] * 5 + ["ben"] * 5)
    policy = STRICT + "max_documents_per_user = 2\n"
    answer, host = shard(tmp_path / "north", corpus, policy, user_epsilon=24.0, user_documents=2)
    assert answer.kind == "ok", answer.text
    assert spent(host) <= 24.0
