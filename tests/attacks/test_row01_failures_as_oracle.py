"""Row 1: a server finds out which words a party has, at no charge, by which questions fail and which are refused."""

import pytest

from helpers.attacks import ABSENT, BUDGET, LIST, PRESENT, PUBLIC, STRICT, Attacked, method_of
from tertulia.federation.codec import encode
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask
from tertulia.methods.ftm.method import train_local

FTM = {"name": "ftm", "topics": 2, "rounds": 2, "sweeps": 2, "mode": "sound", "epsilon": 9.0, "vocabulary": PUBLIC}


def task(party: Attacked, words: tuple[str, ...]) -> LocalTask:
    return LocalTask(words, method_of(party).part(Training), None, with_sizes=True)


def test_a_budget_refuses_before_anything_can_fail(tmp_path):
    """Each word in a run of its own, which the party agrees to: present and absent words look the same."""
    answers = set()
    for word in (*PRESENT, *ABSENT):
        listed = (word, "nowhere")
        method = {**FTM, "vocabulary": {"mode": "public", "words": list(listed)}}
        party = Attacked(tmp_path / word, method, STRICT)
        party.adopt(STRICT + BUDGET)  # it would not have agreed with this one
        answers.add(encode(party.ask(train_local, task(party, listed))))
        assert party.host.ledger.releases() == []
    assert len(answers) == 1


@pytest.mark.parametrize("vocabulary", [PUBLIC, {"mode": "union"}])
def test_a_run_has_one_word_list(vocabulary, tmp_path):
    """A word list per question: all but the run's own are refused, for any documents of the party."""
    method = {**FTM, "vocabulary": vocabulary}
    if vocabulary["mode"] == "union":
        method |= {"mode": "paper"}
    party = Attacked(tmp_path, method, STRICT)
    party.adopt(STRICT + BUDGET.replace("8.0", "100"))
    first = party.ask(train_local, task(party, LIST))
    assert first.text != "refused by rule 'words'"
    rows = len(party.host.ledger.releases())
    answers = {encode(party.ask(train_local, task(party, (word, "nowhere")))) for word in (*PRESENT, *ABSENT)}
    assert len(answers) == 1
    assert party.ask(train_local, task(party, ("cough",))).text == "refused by rule 'words'"
    assert len(party.host.ledger.releases()) == rows
    party.reopen()
    assert party.ask(train_local, task(party, ("cough",))).text == "refused by rule 'words'"  # also after a crash


def test_a_list_that_no_document_has_is_charged_like_any_other(tmp_path):
    party = Attacked(tmp_path, {**FTM, "epsilon": 2.0, "vocabulary": {"mode": "public", "words": list(ABSENT)}})
    assert party.ask(train_local, task(party, ABSENT)).kind == "ok"  # all its words are off the list, in their places
    row, *_ = party.host.ledger.releases()
    assert row.charges
