"""The total cost: words, documents and users are distinguished, and derived releases are not free."""

import math

import numpy as np
import pytest

from tertulia.corpus import Corpus, TextOptions
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Adjacency, Clear, Derived, DiscreteLaplace, Public, Unit
from tertulia.privacy.mechanisms.token_reports import TokenReports, UserReports
from tertulia.privacy.policy import Policy
from tertulia.view.totals import Lengths, totals

KRR = TokenReports("reports of tokens", channel=Channel("krr", 8.0, V=2949))


def release(mechanism, name, verb="sum"):
    return Release.of(
        mechanism, id=name, party="north", round=1, step="m:s", verb=verb, message_hash="ff", x=np.zeros(4)
    )


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def table(ledger, delta, lengths=None, policy=""):
    spent = lambda unit, bounds: ledger.cost(  # noqa: E731
        unit, Adjacency.SUBSTITUTE, delta, tokens=bounds.tokens_per_document
    )
    return {row["of"]: row for row in totals(ledger.releases(), spent, lengths, Policy.parse(policy))}


def test_a_document_costs_as_its_length_says(ledger):
    ledger.record(release(KRR, "a"))
    ledger.record(release(Derived("topic-word counts", parents=("a",)), "b"))
    pure = table(ledger, 0.0, Lengths(63, 120))
    assert {of: row["real epsilon"] for of, row in pure.items()} == {
        "a word": "8", "an average document (63 words)": "504", "the longest document (120 words)": "960",
    }  # fmt: skip
    assert float(table(ledger, 1e-6, Lengths(63, 120))["the longest document (120 words)"]["real epsilon"]) == 687.5


def test_what_is_derived_costs_as_its_sources_and_nothing_twice(ledger):
    ledger.record(release(KRR, "a"))
    ledger.record(release(Public("number of documents"), "n"))
    ledger.record(release(Derived("counts", parents=("a",)), "b"))
    ledger.record(release(Derived("shares", parents=("b", "n")), "c"))
    ledger.record(release(Derived("sizes", parents=("n",)), "d"))
    rows = {row.what: row for row in ledger.table(delta=0.0)}
    for what, sources in (("counts", ("reports of tokens",)), ("shares", ("number of documents", "reports of tokens"))):
        assert rows[what].sources == sources
        assert rows[what].real.epsilon == pytest.approx(8.0)
    assert (rows["counts"].unit, rows["counts"].adjacency) == (Unit.TOKEN, Adjacency.SUBSTITUTE)
    assert "the lengths of documents are public" in rows["counts"].real.assumptions
    assert rows["sizes"].real.epsilon == 0  # what is public is free, also when it is derived from
    assert table(ledger, 0.0)["a word"]["real epsilon"] == "8"


def test_what_is_derived_from_several_rounds_of_noise_costs_all_of_them(ledger):
    for name in "abc":
        ledger.record(release(DiscreteLaplace("counts", 1, 0.5), name))
        ledger.record(release(Derived("model", parents=(name,)), f"{name}'"))
    (row,) = [row for row in ledger.table(delta=0.0) if row.what == "model"]
    assert (row.real.epsilon, row.unit, row.adjacency) == (1.5, Unit.DOCUMENT, Adjacency.ADD_REMOVE)


def test_clear_things_cost_everything_for_everybody(ledger):
    ledger.record(release(KRR, "a"))
    ledger.record(release(Clear("scores"), "b"))
    rows = table(ledger, 1e-6, Lengths(5, 9))
    assert len(rows) == 3
    assert all(row["real epsilon"].startswith("infinite") for row in rows.values())
    assert all("scores left in the clear" in row["remarks"] for row in rows.values())


def test_users_are_told_of_where_they_are_declared(ledger):
    ledger.record(release(KRR, "a"), Policy.parse("max_documents_per_user = 3"))
    assert "a user" not in table(ledger, 0.0, Lengths(5, 10))
    assert table(ledger, 0.0, Lengths(5, 10), "max_documents_per_user = 3")["a user"]["real epsilon"] == "240"
    ledger.record(release(UserReports("reports", channel=Channel("krr", 2.0, V=50), tokens=6), "u"))
    found = table(ledger, 0.0, Lengths(5, 10), "max_documents_per_user = 3")
    assert found["a user"]["real epsilon"] == "252"
    assert found["a word"]["real epsilon"] == "10"  # one report of each kind
    assert found["an average document (5 words)"]["real epsilon"] == "50"
    assert found["the longest document (10 words)"]["real epsilon"] == "92"  # of which only six are reported again


def test_lengths_are_those_of_training_documents_in_the_vocabulary():
    texts = ["oak elm fir", "oak oak", "elm", ""]
    corpus = Corpus.from_texts(texts, options=TextOptions(stop_words="none"))
    assert Lengths.of(corpus, 0.0) == Lengths(math.ceil(6 / 4), 3)
