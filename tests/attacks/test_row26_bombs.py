"""Row 26: a few bytes ask for gigabytes, or for years. Each number of a message has a bound, and policies have caps."""

import dataclasses
import time
import tracemalloc

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from tertulia.federation.codec import decode
from tertulia.federation.messages import BEFORE_ALL, Question
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask
from tertulia.methods.fedlda.method import Broadcast, local_sampling
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.ftm.method import train_local

FTM = {"name": "ftm", "topics": 2, "rounds": 1, "sweeps": 2, "vocabulary": PUBLIC}
FEDLDA = {"name": "fedlda", "topics": 2, "rounds": 2, "mode": "paper", "mechanism": "hm", "vocabulary": PUBLIC}


def task(party: Attacked) -> LocalTask:
    return LocalTask(LIST, method_of(party).part(Training), None, with_sizes=True)


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"topics": 10**9}, "max_topics"), ({"sweeps": 10**12}, "max_sweeps"), ({"topics": 9_000}, "max_cells")],
)
def test_caps_hold_though_the_plan_says_otherwise(changes, rule, owners, tmp_path):
    """The plan itself is the bomb, and the party has agreed to it."""
    party = Attacked(tmp_path, {**FTM, **changes}, OPEN + "max_cells = 50_000\n", owners=owners)
    start = time.monotonic()
    answer = party.ask(train_local, task(party))
    assert (answer.kind, f"'{rule}'" in answer.text) == ("refused", True)
    assert time.monotonic() - start < 5


def test_caps_are_the_partys_own(tmp_path):
    party = Attacked(tmp_path, FTM, OPEN + "max_topics = 1\nmax_words = 5\n")
    assert party.ask(train_local, task(party)).text in {
        f"refused by rule '{rule}'" for rule in ("max_topics", "max_words")
    }
    tight = Attacked(tmp_path / "tight", FTM, OPEN + "max_question_bytes = 100\n")
    assert tight.ask(train_local, task(tight)).text == "refused by rule 'max_question_bytes'"


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize("claim", [10**5, 2**30, 2**63])
def test_a_packed_question_is_refused_by_what_it_claims(claim, owners, tmp_path):
    party = Attacked(tmp_path, FTM, OPEN + "max_question_bytes = 50_000\n", owners=owners)
    bomb = b"\xfftertul1" + bytes(32) + claim.to_bytes(8, "little") + (100).to_bytes(8, "little") + bytes(20_000)
    question = Question(party.run.id, (0, 0), BEFORE_ALL, 0, True, bomb, party.plan)
    tracemalloc.start()
    answer = decode(party.host.answer(question.to_bytes()))
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert (answer.kind, "'max_question_bytes'" in answer.text or owners == "one") == ("refused", True)
    assert party.ask(train_local, task(party)).kind == "ok"


@pytest.mark.parametrize("owners", ["one", "several"])
def test_noise_of_almost_no_epsilon_is_not_drawn(owners, tmp_path):
    party = Attacked(tmp_path, {**FEDLDA, "epsilon": 1e-6}, OPEN, owners=owners)
    ask = Broadcast(LIST, method_of(party).part(UserSettings), np.zeros((2, len(LIST))), 0)
    assert party.ask(local_sampling, ask, "sum").kind == "failed"
    assert party.host.ledger.releases() == []


@pytest.mark.parametrize("round_", [-1, 10**9, 2**62, True, 0.5, "0", None])
def test_rounds_are_bounded(round_, tmp_path):
    party = Attacked(tmp_path, {**FEDLDA, "epsilon": 5.0}, OPEN)
    ask = Broadcast(LIST, method_of(party).part(UserSettings), np.zeros((2, len(LIST))), 0)
    if round_ != -1:  # in a message
        assert party.ask(local_sampling, dataclasses.replace(ask, round=round_), "sum").kind != "ok"
    if not isinstance(round_, str):  # as a place, and as a place before
        assert party.ask(local_sampling, ask, "sum", place=(round_, 0)).kind != "ok"
        assert party.ask(local_sampling, ask, "sum", place=(0, round_)).kind != "ok"
    assert party.ask(local_sampling, ask, "sum").kind == "ok"
