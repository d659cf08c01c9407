"""Releases that were announced n times were answered more often where no budget was set."""

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from tertulia.federation.messages import BEFORE_ALL
from tertulia.methods.common.evaluation import Candidate, score
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.consensus.method import train_local
from tertulia.methods.ftm.method import LocalTask
from tertulia.methods.pctd import method as pctd

CONSENSUS = {"name": "consensus", "topics": 2, "rounds": 2, "sweeps": 1, "start_sweeps": 1, "mode": "sound",
             "epsilon": 4.0, "evaluate": True, "vocabulary": PUBLIC}  # fmt: skip
PCTD = {"name": "pctd", "topics": 2, "rounds": 3, "mode": "paper", "sigma": 2.0, "vocabulary": PUBLIC,
        "evaluate": False}  # fmt: skip
SCORES = "allow_clear = false\nscore_epsilon = 0.5\n"


def candidate(number: int) -> Candidate:
    phi = np.random.default_rng(number).dirichlet(np.ones(len(LIST)), 2)
    return Candidate(LIST, phi, np.ones(2), 0.0)


def ask_rounds(attacked, step, messages, verb="sum"):
    """One question in each round, as rounds are numbered by the server."""
    said = []
    for number, message in enumerate(messages):
        attacked.place = (number, 0)
        said.append(attacked.ask(step, message, verb))
    return [answer.kind for answer in said]


@pytest.mark.parametrize("owners", ["several", "one"])
def test_two_scores_are_announced_and_two_are_answered(tmp_path, owners):
    party = Attacked(tmp_path, CONSENSUS, SCORES, owners=owners)
    assert ask_rounds(party, score, map(candidate, range(10))) == ["ok"] * 2 + ["refused"] * 8
    party.reopen()  # the count is in the ledger, not in the process
    assert ask_rounds(party, score, map(candidate, range(40, 42))) == ["refused"] * 2
    costs = [release for release in party.host.ledger.releases() if release.charges]
    assert len(costs) == 2


def test_pctd_answers_three_rounds_and_charges_for_no_more(tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN)
    config = method_of(party)
    phis = [np.random.default_rng(i).dirichlet(np.ones(len(LIST)), 2) for i in range(12)]
    tasks = [pctd._task(config, pctd.PCTDState(i, LIST, phi, np.ones(2), phi)) for i, phi in enumerate(phis)]
    assert ask_rounds(party, pctd.expect, tasks) == ["ok"] * 3 + ["refused"] * 9
    assert len([release for release in party.host.ledger.releases() if release.charges]) == 3


def test_a_place_is_asked_again_with_other_contents_only_so_often(tmp_path):
    """An interrupted server may have another model to score than before; a malicious one has forty."""
    party = Attacked(tmp_path, CONSENSUS, OPEN)
    ask = lambda number: party.ask(score, candidate(number), "sum", place=(1, 0), previous=BEFORE_ALL)  # noqa: E731
    said = [ask(number).kind for number in range(10)]
    assert said == ["ok"] * 5 + ["refused"] * 5  # 2 announced, and 3 repeats
    assert [ask(number).kind for number in range(5)] == ["ok"] * 5  # the same questions are the same releases
    strict = Attacked(tmp_path / "strict", CONSENSUS, OPEN + "max_repeats = 0\n")
    strict.ask(score, candidate(0), "sum", place=(1, 0))
    strict.ask(score, candidate(1), "sum", place=(2, 0), previous=(1, 0))
    assert strict.ask(score, candidate(2), "sum", place=(2, 0), previous=(1, 0)).kind == "refused"
    assert "max_repeats" in strict.log


def test_what_is_not_announced_does_not_leave(tmp_path):
    party = Attacked(tmp_path, CONSENSUS | {"robust": True}, OPEN)
    task = LocalTask(LIST, method_of(party).part(Training, sweeps=1), None, with_sizes=True)
    answer = party.ask(train_local, task)
    assert (answer.kind, answer.text) == ("refused", "refused by rule 'plan'")
    assert "'topic sizes' is not announced" in party.log
    assert not [release for release in party.host.ledger.releases() if release.what == "topic sizes"]
