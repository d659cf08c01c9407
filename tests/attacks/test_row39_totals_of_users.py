"""A patient's documents of later quarters are reported for nothing, and FedLDA takes each document for a user."""

import itertools
import math

import numpy as np
import pytest

from helpers.attacks_noise import STRICT, WORDS, as_written_before, ask, corpus_of, party, report
from tertulia.methods.fedlda import method as fedlda
from tertulia.methods.fedlda.settings import FedLDASettings, UserSettings
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.user_totals import NO_USERS, NOT_COUNTED

TWO = "max_tokens_per_document = 2\nmax_documents_per_user = 1\n"
USERS = '[[budget]]\nunit = "user"\nadjacency = "substitute"\nepsilon = {}\ndelta = 0.0\n'
PUBLIC = {"mode": "public", "words": WORDS}
FEDLDA = {"methods": (fedlda.__name__,)}


def spent(host, delta=0.0, unit=Unit.USER):
    return host.ledger.cost(unit, Adjacency.SUBSTITUTE, delta, bounds=host.policy.bounds)


@pytest.fixture
def quarter(tmp_path):
    """`quarter(texts, users)`: a new run from the same home, each with documents of its own."""
    runs = itertools.count()

    def run(texts, users=None, policy=STRICT + TWO, ids=None):
        i = next(runs)
        names = ids or [f"{i}-{n}" for n in range(len(texts))]
        host = party(tmp_path / f"run{i}", corpus_of(texts, names, users), policy=policy, run=f"run{i}")
        return host, ask(host, report)

    return run


def test_documents_of_later_quarters_add_up_for_their_user(quarter):
    """Two reports of epsilon 1 in each quarter; Ben has one document, Ann six."""
    for i in range(6):
        host, answer = quarter(["ache burn", "dose fever"], ["ann", "ben" if i == 0 else f"other {i}"])
        assert answer.kind == "ok", answer.text
        assert spent(host).epsilon == pytest.approx(2.0 * (i + 1))
    assert spent(host, unit=Unit.DOCUMENT).epsilon == pytest.approx(2.0)
    assert spent(host, unit=Unit.TOKEN).epsilon == pytest.approx(1.0)
    assert "a user has had 6 documents reported at most" in spent(host).assumptions


def test_the_budget_of_a_user_ends(quarter):
    policy = STRICT + TWO + USERS.format(6.0)
    for _ in range(3):
        assert quarter(["ache burn"], ["ann"], policy)[1].kind == "ok"
    host, answer = quarter(["ache burn"], ["ann"], policy)
    assert answer.kind == "refused"
    assert spent(host).epsilon == pytest.approx(6.0)  # and nothing was charged
    assert quarter(["ache burn"], ["ben"], policy)[1].kind == "ok"  # another user has the whole budget


def test_the_total_is_that_of_the_exact_law(quarter):
    """Two quarters, two tokens each: all 5^4 outputs of two users' reports, at deltas above 0."""
    for _ in range(2):
        host, _ = quarter(["ache burn"], ["ann"])
    keep = math.e / (math.e + len(WORDS) - 1)
    law = np.full((len(WORDS), len(WORDS)), (1 - keep) / (len(WORDS) - 1))
    np.fill_diagonal(law, keep)
    one, other = (
        np.einsum("a,b,c,d->abcd", *(law[w] for w in words)).ravel() for words in ([0, 1, 0, 1], [2, 3, 4, 2])
    )
    assert math.log((one / other).max()) == pytest.approx(spent(host).epsilon)
    for delta in (1e-6, 1e-2, 0.1):
        claimed = spent(host, delta).epsilon
        assert np.maximum(one - math.exp(claimed) * other, 0).sum() <= delta * (1 + 1e-9)
        assert np.maximum(one - math.exp(claimed - 0.01) * other, 0).sum() > delta  # and no more than is due


def test_a_document_that_is_reported_again_costs_its_user_nothing_and_an_edited_one_does(quarter):
    host, _ = quarter(["ache burn"], ["ann"], ids=["a"])
    host, _ = quarter(["ache burn"], ["ann"], ids=["a"])
    assert spent(host).epsilon == pytest.approx(2.0)
    host, _ = quarter(["ache dose"], ["ann"], ids=["a"])
    assert spent(host).epsilon == pytest.approx(4.0)


def test_a_document_that_changes_hands_counts_for_both(quarter):
    quarter(["ache burn", "dose dose"], ["ann", "ben"], ids=["a", "b"])
    host, answer = quarter(["ache burn", "cold cold"], ["ben", "cleo"], ids=["a", "c"])
    assert answer.kind == "ok"
    assert spent(host).epsilon == pytest.approx(4.0)  # Ben's


def test_without_users_nothing_is_promised_to_them(quarter):
    host, answer = quarter(["ache burn"], policy=STRICT + "max_tokens_per_document = 2\n")
    assert answer.kind == "ok"
    assert spent(host).epsilon == math.inf
    assert any("documents name no user" in assumption for assumption in spent(host).assumptions)


def test_a_ledger_of_before_counts_users_once_all_their_documents_have_come_again(tmp_path):
    corpus = corpus_of(["ache burn", "dose fever"], ["a", "b"], ["ann", "ann"])
    policy = STRICT + TWO.replace("user = 1", "user = 2")
    before = party(tmp_path / "before", corpus, policy=policy)
    assert ask(before, report).kind == "ok"
    as_written_before(before, tmp_path)
    assert spent(before).epsilon == math.inf
    assert any(NOT_COUNTED in assumption for assumption in spent(before).assumptions)
    now = party(tmp_path / "now", corpus, policy=policy, run="now")
    now.home = before.home
    charges = [r for r in now.ledger.releases() if r.charges]
    assert ask(now, report).kind == "ok"
    assert spent(now).epsilon == pytest.approx(4.0)
    assert [r for r in now.ledger.releases() if r.charges] == charges  # going on is free


@pytest.mark.parametrize(("users", "documents"), [(["ann"] * 20, 20), ([f"u{i}" for i in range(20)], 1), (None, 1)])
def test_fedlda_counts_the_documents_of_a_user(users, documents, tmp_path):
    corpus = corpus_of(["ache burn cold"] * 20, [str(i) for i in range(20)], users)
    config = FedLDASettings(topics=2, mode="sound", epsilon=1.0, channel="krr", max_words=3, vocabulary=PUBLIC)
    host = party(tmp_path / "north", corpus, **FEDLDA)
    answer = ask(host, fedlda.count_reports, _broadcast(config))
    assert answer.kind == "ok", answer.text
    assert spent(host).epsilon == pytest.approx(3.0 * documents)
    assert (NO_USERS in spent(host).assumptions) == (users is None)
    assert spent(host, unit=Unit.DOCUMENT).epsilon == pytest.approx(3.0)
    refused = party(
        tmp_path / "south", corpus, policy=STRICT + USERS.format(10.1), home=str(tmp_path / "other"), **FEDLDA
    )
    assert (ask(refused, fedlda.count_reports, _broadcast(config)).kind == "ok") == (documents == 1)


@pytest.mark.parametrize(("users", "documents"), [(["ann"] * 3 + ["ben"], 3), (None, 1)])
def test_so_does_the_hybrid_mechanism(users, documents, tmp_path):
    corpus = corpus_of(["ache burn cold"] * 4, list("abcd"), users)
    config = FedLDASettings(topics=2, mode="paper", mechanism="hm", epsilon=1.0)
    host = party(tmp_path / "north", corpus, **FEDLDA)
    answer = ask(host, fedlda.local_sampling, _broadcast(config))
    assert answer.kind == "ok", answer.text
    assert spent(host).epsilon == pytest.approx(documents)
    assert (NO_USERS in spent(host).assumptions) == (users is None)


def _broadcast(config):
    return fedlda.Broadcast(WORDS, config.part(UserSettings), np.zeros((config.topics, len(WORDS))), 0)
