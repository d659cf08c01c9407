"""Words chosen under noise, against a server that asks for more of them, more often, or with less noise."""

import shutil

import pytest

from helpers.attacks import NOTES, STRICT, Attacked, says_nothing
from tertulia.corpus import Corpus
from tertulia.corpus.vocabulary import unpack_words
from tertulia.federation.codec import decode
from tertulia.federation.messages import BEFORE_ALL, DISCLOSURES, Inquiry
from tertulia.methods.common.shared_words import UnionSettings, UnionTask, choose_words
from tertulia.privacy.mechanisms import Adjacency, Unit

METHOD = {
    "name": "consensus", "topics": 2, "rounds": 2, "mode": "sound", "epsilon": 4.0,
    "vocabulary": {"mode": "private", "epsilon": 30.0, "delta": 1e-6, "words_per_document": 8},
}  # fmt: skip
AGREED = {"union_epsilon": 30.0, "union_delta": 1e-6, "distinct_words": 8}


def task(**changes) -> UnionTask:
    return UnionTask(UnionSettings(**AGREED | changes))


@pytest.fixture
def party(tmp_path):
    return Attacked(tmp_path, METHOD, STRICT)


@pytest.mark.parametrize(
    "change", [{"union_epsilon": 100.0}, {"union_epsilon": 29.0}, {"union_delta": 1e-3}, {"distinct_words": 9}]
)
@pytest.mark.parametrize("owners", ["several", "one"])
def test_other_settings_than_the_plans_are_refused(change, owners, tmp_path):
    party = Attacked(tmp_path, METHOD, STRICT, owners=owners)
    answer = party.ask(choose_words, task(**change))
    assert answer.kind == "refused"
    assert "'plan'" in answer.text
    assert says_nothing(answer.text) == (owners == "several")
    assert party.host.ledger.releases() == []
    assert party.ask(choose_words, task()).kind == "ok"


@pytest.mark.parametrize("mode", [{"mode": "union"}, {"mode": "public", "words": ["ward", "fever"]}])
def test_a_plan_without_such_words_has_no_such_step(mode, tmp_path):
    party = Attacked(tmp_path, {"name": "consensus", "topics": 2, "vocabulary": mode}, "allow_clear = true\n")
    assert party.ask(choose_words, task()).kind == "failed"
    assert "which is no step of its plan" in party.log
    assert party.host.ledger.releases() == []


def names_of(answer) -> list[str]:
    assert answer.kind == "ok"
    return unpack_words(answer.reply.text, answer.reply.offsets)


def test_a_repeat_gives_the_same_names_and_costs_nothing(party):
    first = names_of(party.ask(choose_words, task(), place=(0, 0)))
    assert 0 < len(first) < len({word for note in NOTES for word in note.split()})
    rows = [release.id for release in party.host.ledger.releases()]
    shutil.rmtree(party.directory / "answers")  # a crash: what was answered is forgotten, and the noise is not
    party.reopen()
    assert names_of(party.ask(choose_words, task(), place=(0, 0))) == first
    assert [release.id for release in party.host.ledger.releases()] == rows
    assert len(rows) == 3


def test_words_are_chosen_once(party):
    """With other noise at each place, a server would average it out."""
    answers = [party.ask(choose_words, task(), place=(0, i), previous=BEFORE_ALL) for i in range(20)]
    assert [answer.kind for answer in answers] == ["ok"] + ["refused"] * 19
    assert len([release for release in party.host.ledger.releases() if release.charges]) == 1


def test_the_ledger_charges_the_choice_to_documents(party):
    party.ask(choose_words, task())
    ledger = party.host.ledger
    weights, *names = ledger.releases()
    assert (weights.name, weights.unit, weights.sensitivity) == ("word-union", Unit.DOCUMENT, 1.0)
    assert weights.params == {"epsilon": 30.0, "delta": 1e-6, "words_per_document": 8}
    assert [release.parents for release in names] == [(weights.id,)] * 2
    found = ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, delta=1e-6)
    assert found.epsilon == pytest.approx(30.0, abs=1e-2)
    assert {row.what: row.real.epsilon for row in ledger.table()} == {"words chosen under noise": found.epsilon}


BUDGET = (
    'max_tokens_per_document = 8\n[[budget]]\nunit = "document"\nadjacency = "substitute"\nepsilon = {}\ndelta = 1e-6\n'
)


@pytest.mark.parametrize(("epsilon", "kind"), [(60.0, "refused"), (150.0, "ok")])
def test_a_budget_of_a_document_holds_for_words_and_reports_together(epsilon, kind, tmp_path):
    """The words cost about 83 where a document becomes another, and reports of eight tokens up to 32."""
    party = Attacked(tmp_path, METHOD, STRICT + BUDGET.format(epsilon))
    assert party.ask(choose_words, task()).kind == kind
    assert bool(party.host.ledger.releases()) == (kind == "ok")
    assert ("budget.document.substitute" in party.log) == (kind == "refused")


def test_a_server_does_not_learn_how_many_words_there_were(party):
    party.ask(choose_words, task())
    answer = decode(party.host.answer(Inquiry(party.run.id, DISCLOSURES).to_bytes()))
    weights, *names = answer.reply
    assert (weights["mechanism"], weights["shape"], weights["bytes"]) == ("word-union", None, 0)
    assert all(row["shape"] is not None and row["bytes"] for row in names)
    assert party.host.ledger.releases()[0].shape == (len(Corpus.from_texts(NOTES).vocabulary),)
