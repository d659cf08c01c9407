"""A corpus grows by one document, and every token is reported again at full price: or at none, under the same noise."""

import numpy as np
import pytest

from helpers.attacks_noise import BUDGET, STRICT, ask, corpus_of, party, report
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.reported_documents import NO_IDS

A, B, C = "ache burn cold " * 20, "dose fever cold " * 20, "fever ache " * 20
EDITED = "ache burn dose " + "ache burn cold " * 19


@pytest.fixture
def said(tmp_path):
    """`said(texts, ids)`: each document's reports in a new run from the same home, and epsilon of a token so far."""
    runs = iter(range(99))

    def run(texts, ids=None, budget=2.5):
        i = next(runs)
        host = party(tmp_path / f"run{i}", corpus_of(texts, ids), run=f"run{i}", policy=STRICT + BUDGET.format(budget))
        answer = ask(host, report)
        assert answer.kind == "ok", answer.text
        documents = np.split(np.asarray(answer.reply.values), np.cumsum([len(text.split()) for text in texts])[:-1])
        loss = host.ledger.cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0)
        return [document.tolist() for document in documents], loss

    return run


def test_a_new_document_costs_the_others_nothing_and_changes_none_of_their_reports(said):
    (a, b), first = said([A, B], ["a", "b"])
    (c, a2, b2), second = said([C, A, B], ["c", "a", "b"])
    assert (a2, b2) == (a, b)
    assert c not in (a, b)
    assert first.epsilon == second.epsilon == pytest.approx(1.0)


def test_an_edited_document_is_reported_and_charged_again(said):
    (a, b), _ = said([A, B], ["a", "b"])
    (a2, b2), loss = said([EDITED, B], ["a", "b"])
    assert b2 == b
    assert sum(x != y for x, y in zip(a[3:], a2[3:], strict=True)) > 5  # fresh noise for words that stayed
    assert loss.epsilon == pytest.approx(2.0)
    assert said([EDITED, B + " dose"], ["a", "b"])[1].epsilon == pytest.approx(
        2.0
    )  # the worst document has two versions
    with pytest.raises(AssertionError, match="budget"):
        said([A + " dose", B], ["a", "b"])  # and this would be its third


def test_a_version_of_before_costs_nothing(said):
    (a,), _ = said([A], ["a"])
    said([EDITED], ["a"])
    (again,), loss = said([A], ["a"])
    assert again == a
    assert loss.epsilon == pytest.approx(2.0)


def test_a_forgotten_document_is_gone_and_the_rest_stays(said):
    (a, _, c), _ = said([A, B, C], ["a", "b", "c"])
    (a2, c2), loss = said([A, C], ["a", "c"])
    assert (a2, c2) == (a, c)
    assert loss.epsilon == pytest.approx(1.0)


def test_equal_documents_have_noise_of_their_own_and_keep_it(said):
    (x,), _ = said([A], ["x"])
    (w, x2), _ = said([A, A], ["w", "x"])  # the newcomer comes first, and must not take over the reports of x
    assert x2 == x != w
    assert said([A, A], ["x", "w"])[0] == [x, w]
    assert said([A], ["w"])[0] == [w]


def test_without_ids_the_assumption_is_named(said):
    assert NO_IDS not in said([A, B], ["a", "b"])[1].assumptions
    unnamed = said([A, B])[1]  # they may be other documents than before: charged again
    assert NO_IDS in unnamed.assumptions
    assert unnamed.epsilon == pytest.approx(2.0)


def test_documents_that_changed_places_cost_nothing(said):
    (a, b), _ = said([A, B], ["a", "b"])
    assert said([B, A], ["b", "a"])[0] == [b, a]
