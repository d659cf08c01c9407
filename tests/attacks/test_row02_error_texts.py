"""Row 2: a server reads numbers of raw data in the texts of errors that it provokes."""

import dataclasses

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of, says_nothing
from tertulia.errors import InputError
from tertulia.federation.party.host import PartyHost
from tertulia.methods.common.evaluation import Candidate, score
from tertulia.methods.pctd.method import UnitTask, expect
from tertulia.methods.pctd.settings import UnitSettings

PCTD = {"name": "pctd", "topics": 2, "rounds": 3, "unit": "sentence", "vocabulary": PUBLIC}
PHI = np.full((2, len(LIST)), 1 / len(LIST))


def question(party: Attacked, **changes) -> UnitTask:
    return dataclasses.replace(UnitTask(LIST, method_of(party).part(UnitSettings), None, PHI), **changes)


HOSTILE = [
    {"topic_word": PHI[:, :4]},  # "words run from 4 to 9": which words there are
    {"topic_word": PHI[:, :0]},
    {"topic_word": PHI[0]},
    {"topic_word": np.full_like(PHI, np.nan)},
    {"topic_word": PHI.astype(np.int64)},
    {"words": LIST[:3]},
    {"words": (*LIST[:-1], LIST[0])},
    {"units": None},
    {"noise": 3},
]


@pytest.mark.parametrize("changes", HOSTILE)
def test_what_is_wrong_is_said_at_the_party_alone(changes, tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN)
    answer = party.ask(expect, question(party, **changes), "sum")
    assert answer.kind != "ok"
    assert says_nothing(answer.text)
    assert not any(character.isdigit() for character in answer.text)
    assert len(party.log.splitlines()) == 1
    assert party.ask(expect, question(party), "sum").kind == "ok"


def test_no_text_of_an_error_crosses(tmp_path, monkeypatch):
    """The text of an exception in a step stays at the party."""
    party = Attacked(tmp_path, PCTD, OPEN)

    def corpus(self):
        raise InputError("words run from 4 to 32: garcia")

    monkeypatch.setattr(PartyHost, "documents", lambda self, *_, **__: corpus(self))
    answer = party.ask(expect, question(party), "sum")
    assert says_nothing(answer.text)
    assert "garcia" in party.log
    monkeypatch.setattr(PartyHost, "documents", lambda self, *_, **__: {}["garcia"])
    answer = party.ask(expect, question(party), "sum")
    assert says_nothing(answer.text)
    assert "KeyError at" in party.log
    assert party.log.count("garcia") == 1  # what others' errors say is not even in the log, unless the party wants it


def test_the_party_may_ask_for_details_in_its_log(tmp_path, monkeypatch):
    party = Attacked(tmp_path, PCTD, OPEN + "log_details = true")
    monkeypatch.setattr(PartyHost, "documents", lambda self, *_, **__: {}["garcia"])
    assert says_nothing(party.ask(expect, question(party), "sum").text)
    assert "KeyError: 'garcia'" in party.log


def test_one_owner_reads_everything(tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN, owners="one")
    candidate = Candidate(LIST, PHI.astype(np.float32), np.ones(3), 0.0)
    assert "'alpha' does not fit" in party.ask(score, candidate, "sum").text
