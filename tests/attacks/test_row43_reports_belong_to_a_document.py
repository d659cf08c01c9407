"""A new document with the words of one that has left takes over its reports: equal bits show that the two are equal."""

import itertools

import numpy as np
import pytest

from helpers.attacks_noise import STRICT, as_written_before, ask, corpus_of, party, report
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.reported_documents import Fingerprints, ReportedDocuments

A, B = "ache burn cold dose " * 25, "dose fever cold ache " * 25


@pytest.fixture
def said(tmp_path):
    """`said(texts, ids)`: each document's reports in a new run from the same home."""
    runs = itertools.count()

    def run(texts, ids=None):
        i = next(runs)
        host = party(tmp_path / f"run{i}", corpus_of(texts, ids), policy=STRICT, run=f"run{i}")
        answer = ask(host, report)
        assert answer.kind == "ok", answer.text
        return [part.tolist() for part in np.split(np.asarray(answer.reply.values), len(texts))]

    return run


def test_a_newcomer_does_not_take_over_the_reports_of_one_that_has_left(said):
    (old,) = said([A], ["x"])
    said([B], ["y"])
    (equal,) = said([A], ["z"])
    assert equal != old
    assert said([A], ["z"]) == [equal]  # its own from now on


def test_nor_at_once_in_the_place_of_the_one_that_leaves(said):
    (old,) = said([A], ["x"])
    assert said([A], ["z"]) != [old]


def test_nor_the_reports_of_a_version_that_was_edited(said):
    (old,) = said([A], ["x"])
    said([B], ["x"])
    (equal, _) = said([A, B], ["z", "x"])
    assert equal != old
    assert said([A], ["x"]) == [old]  # a version of before, of the same document


def test_a_document_that_comes_back_under_its_id_has_its_reports_and_costs_nothing(said):
    (old,) = said([A], ["x"])
    said([B], ["y"])
    said([A], ["z"])
    assert said([A], ["x"]) == [old]


def test_an_id_that_is_used_again_for_another_text_is_charged_again(said, tmp_path):
    said([A], ["x"])
    said([B], ["x"])
    host = party(tmp_path / "last", corpus_of([B], ["x"]), policy=STRICT, run="last")
    assert host.ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon == pytest.approx(2.0)


def test_copies_within_a_corpus_have_reports_of_their_own(said):
    first, second = said([A, A], ["x", "y"])
    assert first != second
    assert said([A], ["y"]) == [second]
    third = said([A, A], ["z", "y"])
    assert third[1] == second
    assert third[0] not in (first, second)


def test_without_ids_a_text_is_its_own_name(said):
    """It may be the earlier document or another one: an unchanged corpus gives unchanged reports."""
    one, two = said([A, A])
    said([B])
    assert said([A]) == [one]
    assert said([A, A]) == [one, two]


def test_a_home_of_before_goes_on_for_nothing(tmp_path):
    host = party(tmp_path / "before", corpus_of([A, B], ["x", "y"]), policy=STRICT)
    before = ask(host, report)
    as_written_before(host, tmp_path)
    again = party(tmp_path / "again", corpus_of([A, B], ["x", "y"]), policy=STRICT, run="again")
    again.home = host.home
    assert ask(again, report).reply.values.tolist() == before.reply.values.tolist()
    assert again.ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon == pytest.approx(1.0)


def test_a_number_is_given_once():
    """Over many random comings and goings no two documents ever have the same number for the same content."""
    draw, known, given = np.random.default_rng(7), ReportedDocuments(), {}
    for _ in range(60):
        ids = [bytes([i]) * 16 for i in draw.permutation(8)[:4]]
        contents = [bytes([c]) * 16 for c in draw.integers(3, size=4)]
        numbered, new = known.number(Fingerprints(ids, contents))
        for id_, content, number in zip(ids, contents, numbered.numbers, strict=True):
            assert given.setdefault((content, number), id_) == id_
        known.add_batch(new.to_json("charge", None))
        assert known.number(Fingerprints(ids, contents))[0].numbers == numbered.numbers
