"""The total cost: words, documents and users are distinguished, and derived releases are not free."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers.shared_counts import DELTA, epsilon_of_shift
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.builder import from_texts
from tertulia.kernels.reports.channel import Channel
from tertulia.privacy.assumptions import AT_ONE_PARTY
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Adjacency, Claim, Clear, Derived, DiscreteLaplace, Public, Unit
from tertulia.privacy.mechanisms.shared_gaussian import SharedGaussian
from tertulia.privacy.mechanisms.token_reports import TokenReports, UserReports
from tertulia.privacy.policy import Policy
from tertulia.privacy.reach import AS_HERE
from tertulia.view.totals import (
    DOCUMENTS_AT_ONE,
    USERS_ANYWHERE,
    USERS_AT_ONE,
    Lengths,
    is_shared,
    remarks_on_places,
    totals,
    totals_of_plan,
)

PRESENCE = "a document, there or not"
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
    spent = lambda unit, adjacency, bounds, reach: ledger.cost(  # noqa: E731
        unit, adjacency, delta, tokens=bounds.tokens_per_document, reach=reach
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


def test_users_are_mentioned_where_they_are_declared(ledger):
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
    assert Lengths.of(corpus, 0.0)[:2] == (math.ceil(6 / 4), 3)


def shared(shares, unit=Unit.DOCUMENT, sigma=4.0):
    return SharedGaussian("sums", sensitivity=1.0, sigma=sigma, bits=12, shares=shares, unit=unit)


def rows_of_plan(*planned, policy="", lengths=Lengths(5, 10)):  # noqa: B008
    return {row["of"]: row for row in totals_of_plan(planned, lengths, Policy.parse(policy), DELTA)}


def test_a_document_that_is_there_or_not_has_a_row_where_its_cost_is_finite():
    rows = rows_of_plan(replace(release(shared(1), "a"), masked=True))
    assert list(rows) == ["a word", "an average document (5 words)", "the longest document (10 words)", PRESENCE]
    assert float(rows[PRESENCE]["real epsilon"]) == pytest.approx(epsilon_of_shift(1, 4.0), rel=2e-3)
    for of in list(rows)[:3]:  # replaced: one removed, one added
        assert float(rows[of]["real epsilon"]) == pytest.approx(epsilon_of_shift(2, 4.0), rel=2e-3)
    assert PRESENCE not in rows_of_plan(release(KRR, "a"))  # of words: one report more is seen by everybody
    assert PRESENCE not in rows_of_plan(release(shared(1), "a"), release(KRR, "b"))
    assert PRESENCE not in rows_of_plan(release(Public("number of documents"), "n"))


def test_users_that_are_there_or_not_have_a_row_where_users_are_known():
    once = release(shared(1), "a")
    assert "a user, there or not" not in rows_of_plan(once)
    found = rows_of_plan(once, policy="max_documents_per_user = 3")["a user, there or not"]
    assert float(found["real epsilon"]) == pytest.approx(epsilon_of_shift(3, 4.0), rel=2e-3)
    own = rows_of_plan(release(shared(1, Unit.USER), "u"))
    assert float(own["a user, there or not"]["real epsilon"]) == pytest.approx(epsilon_of_shift(1, 4.0), rel=2e-3)
    assert float(own["a user"]["real epsilon"]) == pytest.approx(epsilon_of_shift(2, 4.0), rel=2e-3)


@pytest.mark.parametrize("shares", [1, 2, 9])
def test_a_single_reply_has_a_share_of_the_noise(shares):
    rows = rows_of_plan(*(replace(release(shared(shares), name), masked=True) for name in "abc"))  # three rounds
    row = rows[PRESENCE]
    assert float(row["real epsilon"]) == pytest.approx(epsilon_of_shift(3**0.5, 4.0), rel=2e-3)
    singly = epsilon_of_shift(3**0.5, 4.0 / shares**0.5)
    assert float(row["single reply epsilon"]) == pytest.approx(singly, rel=2e-3)
    assert is_shared(row) == (shares > 1)


def test_shares_of_noise_that_no_mask_adds_up_are_all_there_is():
    row = rows_of_plan(release(shared(4), "a"))[PRESENCE]
    assert float(row["real epsilon"]) == pytest.approx(epsilon_of_shift(1, 2.0), rel=2e-3)
    assert not is_shared(row)


def test_nothing_is_known_of_shares_of_other_noise():
    laplace = replace(release(DiscreteLaplace("counts", 1, 1.0), "a"), params={"shares": 3}, masked=True)
    row = rows_of_plan(laplace)[PRESENCE]
    assert (row["real epsilon"], row["single reply epsilon"]) == ("1", "infinite (non-private)")


def test_claims_are_shown_at_their_unit():
    claim = Claim(1.5, 1e-6, "sec. 3")
    rows = rows_of_plan(replace(release(shared(1), "a"), claimed=claim))
    assert rows[PRESENCE]["claimed epsilon"] == "1.5 (sec. 3, delta 1e-06)"
    assert {row["claimed epsilon"] for of, row in rows.items() if of != PRESENCE} == {"none"}
    words = rows_of_plan(replace(release(KRR, "a"), claimed=claim))
    assert [of for of, row in words.items() if row["claimed epsilon"] != "none"] == ["a word"]


def test_users_at_several_parties_have_rows_of_all_members():
    own = replace(release(shared(2, Unit.USER, sigma=16.0), "u"), masked=True, user_at=3)
    rows = rows_of_plan(own)
    assert [of for of in rows if "user" in of] == [
        "a user", "a user, at all 3 parties", "a user, there or not", "a user, there or not, at all 3 parties",
    ]  # fmt: skip
    for of, shift in (("a user, at all 3 parties", 2), ("a user, there or not, at all 3 parties", 1)):
        expected = epsilon_of_shift(shift * 6**0.5, 16.0)  # three members, each with half of the variance
        assert float(rows[of]["real epsilon"]) == pytest.approx(expected, rel=2e-3)
        assert rows[of]["single reply epsilon"] == rows[of]["real epsilon"]
        assert (rows[of]["members"], rows[of]["claimed epsilon"]) == (3, "none")
        assert AS_HERE in rows[of]["remarks"]
    assert rows["a user, there or not"]["members"] == 1
    assert AS_HERE not in rows["a user, there or not"]["remarks"]
    said = remarks_on_places(list(rows.values()), 3)
    assert said == [DOCUMENTS_AT_ONE, USERS_ANYWHERE.format(3)]


def test_users_at_one_party_as_declared_have_no_such_rows():
    rows = rows_of_plan(replace(release(shared(2, Unit.USER, sigma=16.0), "u"), masked=True, user_at=1).with_users())
    assert [of for of in rows if "user" in of] == ["a user", "a user, there or not"]
    assert AT_ONE_PARTY in rows["a user"]["remarks"]
    assert AT_ONE_PARTY not in rows["a word"]["remarks"]
    assert remarks_on_places(list(rows.values()), 3) == [DOCUMENTS_AT_ONE, USERS_AT_ONE]


def test_places_are_named_only_where_noise_protects_and_several_meet():
    clear = rows_of_plan(replace(release(Clear("scores"), "b"), user_at=3))
    assert remarks_on_places(list(clear.values()), 3) == []
    noisy = list(rows_of_plan(replace(release(shared(1), "a"), user_at=3)).values())
    assert remarks_on_places(noisy, 1) == []
    assert remarks_on_places(noisy, 3) == [DOCUMENTS_AT_ONE]  # nothing is known of users


def test_a_delta_that_is_not_below_one_over_the_units_means_nothing():
    corpus = from_texts(["oak elm fir"] * 8, users=["ann", "ann", "ben", "ben", None, None, " ", "cay"])
    lengths = Lengths.of(corpus, 0.0)
    assert lengths.units == {Unit.TOKEN: 24, Unit.DOCUMENT: 8, Unit.USER: 6}  # three are named, three are not
    own = release(shared(1, Unit.USER), "u")

    def remarks(delta, *planned):
        return {row["of"]: row["remarks"] for row in totals_of_plan(planned, lengths, Policy(), delta)}

    assert not any("delta >=" in one for one in remarks(0.04, own).values())
    found = remarks(1 / 7, own)
    assert "delta >= 1/8: publishing one unit picked at random satisfies it" in found[PRESENCE]
    assert "delta >=" not in found["a user, there or not"]  # six users
    assert "delta >= 1/6" in remarks(1 / 5, own)["a user, there or not"]
