"""Rows 12 and 28: `allow_single` looks at a verb, and limits of bytes at a round, that the server makes up."""

import numpy as np
import pytest

from helpers import attacks
from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from tertulia.methods.pctd.method import UnitTask, expect
from tertulia.methods.pctd.settings import UnitSettings

PCTD = {"name": "pctd", "topics": 2, "rounds": 100, "unit": "sentence", "vocabulary": PUBLIC}


def question(party: Attacked, turn: int = 1) -> UnitTask:
    phi = np.random.default_rng(turn).dirichlet(np.ones(len(LIST)), 2)
    return UnitTask(LIST, method_of(party).part(UnitSettings), None, phi)


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize("verb", ["banana", "", "reports", "SUM", "keeps", 3, None])
def test_a_verb_that_is_none_is_not_answered(verb, owners, tmp_path):
    party = Attacked(tmp_path, PCTD, "allow_single = false\n", owners=owners)
    assert party.ask(expect, question(party), verb).kind == "failed"
    assert party.host.ledger.releases() == []


@pytest.mark.parametrize("verb", ["each", "sum", "mean"])
def test_no_single_reply_leaves_by_any_verb(verb, tmp_path):
    party = Attacked(tmp_path, PCTD, "allow_single = false\n", owners="one")
    party.reopen(plan=None)  # so that the plan, which has only `sum`, does not stand in the way
    answer = party.ask(expect, question(party), verb, plan="")
    assert (answer.kind, answer.text.split(":")[0]) == ("refused", "refused by rule 'allow_single'")


def test_only_the_planned_verb_is_answered(tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN)
    assert [party.ask(expect, question(party), verb).kind for verb in ("each", "mean", "sum")] == [
        "failed", "failed", "ok",
    ]  # fmt: skip


def count_answers(party: Attacked, rounds: int) -> int:
    kinds = []
    for turn in range(rounds):
        party.place = (turn, 0)
        kinds.append(party.ask(expect, question(party, turn), "sum").kind)
    return kinds.count("ok")


def test_bytes_are_counted_by_run_whatever_the_round(tmp_path):
    size = 2 * len(LIST) * 8
    party = Attacked(tmp_path, PCTD, OPEN + f"max_bytes_per_run = {3 * size}\n")
    assert count_answers(party, 12) == 3
    assert "max_bytes_per_run" in party.log


def test_bytes_are_counted_by_day_over_all_runs_of_a_home(tmp_path, monkeypatch):
    size, home = 2 * len(LIST) * 8, str(tmp_path / "home")
    policy = OPEN + f"max_bytes_per_day = {5 * size}\n"
    assert count_answers(Attacked(tmp_path / "first", PCTD, policy, home=home), 3) == 3
    second = Attacked(tmp_path / "second", PCTD, policy, home=home)
    assert count_answers(second, 4) == 2
    monkeypatch.setattr("tertulia.privacy.ledger._now", lambda: "2999-01-01T00:00:00+00:00")
    second.place = (50, 0)
    assert second.ask(expect, question(second, 50), "sum").kind == "ok"  # a day later


def test_attack_helpers_know_their_constants():
    assert not attacks.says_nothing("InputError: words run from 4 to 32")
