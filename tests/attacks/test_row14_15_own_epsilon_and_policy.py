"""Rows 14 and 15: a mode that ignores a party's own epsilon, the server's delta, a policy file that is not there."""

import math

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, STRICT, Attacked, method_of
from tertulia.errors import ConfigError
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import LocalTask
from tertulia.methods.ftm.method import train_local
from tertulia.methods.pctd.method import UnitTask, expect
from tertulia.methods.pctd.settings import UnitNoise, UnitSettings
from tertulia.methods.registry import METHODS
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.policy import Policy, example, strict_example
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

FTM = {"name": "ftm", "topics": 2, "rounds": 2, "sweeps": 2, "vocabulary": PUBLIC}
PCTD = {"name": "pctd", "topics": 2, "rounds": 2, "unit": "sentence", "vocabulary": PUBLIC}


def task(party: Attacked, **changes) -> LocalTask:
    return LocalTask(LIST, method_of(party).part(Training, **changes), None, with_sizes=True)


def units(party: Attacked, turn: int = 1) -> UnitTask:
    phi, method = np.random.default_rng(turn).dirichlet(np.ones(len(LIST)), 2), method_of(party)
    noise = None if method.mode == "clear" else method.part(UnitNoise)
    return UnitTask(LIST, method.part(UnitSettings), noise, phi)


# --- its own epsilon --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owners", ["one", "several"])
@pytest.mark.parametrize(
    ("method", "step", "ask", "verb"), [(FTM, train_local, task, "each"), (PCTD, expect, units, "sum")]
)
def test_a_mode_without_noise_is_refused(method, step, ask, verb, owners, tmp_path):
    party = Attacked(tmp_path, method, OPEN, owners=owners, epsilon=1.0)
    answer = party.ask(step, ask(party), verb)
    assert (answer.kind, "the party's own epsilon" in answer.text) == ("refused", True)
    assert party.host.ledger.releases() == []


def test_a_plan_of_noise_cannot_be_talked_out_of_it(tmp_path):
    party = Attacked(tmp_path, {**FTM, "mode": "sound", "epsilon": 8.0}, OPEN, epsilon=1.0)
    assert party.ask(train_local, task(party, mode="clear", epsilon=None)).text == "refused by rule 'plan'"
    assert party.ask(train_local, task(party, epsilon=20.0)).text == "refused by rule 'plan'"


@pytest.mark.parametrize("owners", ["one", "several"])
def test_delta_is_the_partys_own(owners, tmp_path):
    hostile = {**PCTD, "mode": "paper", "sigma": 0.01, "delta": 1 - 1e-12}
    party = Attacked(tmp_path, hostile, OPEN, owners=owners, epsilon=1.0)
    assert party.ask(expect, units(party), "sum").kind == "ok"
    charge = party.host.ledger.releases()[0]
    assert charge.params["sigma"] >= sigma_for(1.0, 1e-6, 2)
    stricter = Attacked(tmp_path / "stricter", hostile, OPEN, owners=owners, epsilon=1.0, delta=1e-9)
    stricter.ask(expect, units(stricter), "sum")
    assert stricter.host.ledger.releases()[0].params["sigma"] >= sigma_for(1.0, 1e-9, 2)


def test_rounds_are_those_of_the_plan(tmp_path):
    """Noise for two rounds, and twenty questions: only two are answered, and the promise holds for them together."""
    party = Attacked(tmp_path, {**PCTD, "mode": "paper", "sigma": 0.01}, OPEN, epsilon=1.0)
    kinds = [party.ask(expect, units(party, turn), "sum").kind for turn in range(6)]
    assert kinds == ["ok", "ok", "refused", "refused", "refused", "refused"]
    party.reopen()
    assert party.ask(expect, units(party, 9), "sum").text == "refused by rule 'rounds'"
    charges = [release for release in party.host.ledger.releases() if release.charges]
    assert math.sqrt(sum(release.params["sigma"] ** -2 for release in charges)) <= math.sqrt(2) / sigma_for(
        1.0, 1e-6, 2
    )


def test_noise_is_known_by_the_plan_and_not_by_the_names_of_settings(tmp_path):
    """A method may call its settings as it likes: the party's own plan declares whether its epsilon is kept."""
    party = Attacked(tmp_path, {**PCTD, "mode": "paper", "sigma": 0.01}, OPEN, epsilon=1.0)
    plan, agreed = party.host.config.plan, party.plan
    party.reopen(plan={**plan, "noisy_rounds": None})  # although it has settings `mode`, `epsilon` and `rounds`
    assert party.ask(expect, units(party), "sum").text == "refused by rule 'the party's own epsilon'"
    party.reopen(plan={**plan, "noisy_rounds": 1})
    kinds = [party.ask(expect, units(party, turn), "sum").text for turn in range(2)]
    assert kinds == ["", "refused by rule 'rounds'"]
    assert party.plan == agreed  # it follows from the settings, so the hash need not have it


def test_each_method_says_what_noise_it_has_and_follows_a_partys_epsilon():
    asked = {"epsilon": 8.0}
    modes = [("ftm", "sound"), ("consensus", "sound"), ("fedlda", "paper"), ("pctd", "paper")]
    for name, mode in modes:
        own = {"sigma": 0.01} if name == "pctd" else asked
        words = {"vocabulary": PUBLIC} if mode == "sound" else {}
        method = RunSettings(method={"name": name, "mode": mode, "rounds": 4, "topics": 7, **own, **words}).method
        assert (method.noise, method.has_noise, method.planned_rounds, method.planned_topics) == (mode, True, 4, 7)
        assert method.with_own_epsilon(1.0).epsilon == 1.0
        assert method.with_own_epsilon(99.0).epsilon == (8.0 if "epsilon" in own else 99.0)
        most = 6 if name == "consensus" else 4  # rounds of EM
        assert plan_of(RunSettings(method=method), ("north",)).noisy_rounds == most
    private = RunSettings(method={"name": "private_topics"}).method
    assert (private.noise, private.has_noise, private.with_own_epsilon(1.0).epsilon) == ("doc", True, 1.0)
    for name in METHODS:
        modes = {"mode": "clear"} if name == "private_topics" else {}  # the one whose default has noise
        clear = RunSettings(method={"name": name, **modes}).method
        assert (clear.noise, clear.has_noise) == ("none", False)
        assert plan_of(RunSettings(method=clear), ("north",)).noisy_rounds is None


# --- no policy --------------------------------------------------------------------------------------------------------


def test_without_a_file_nothing_leaves_in_clear(tmp_path):
    party = Attacked(tmp_path, FTM, None)
    assert party.ask(train_local, task(party)).text == "refused by rule 'allow_clear'"
    private = Attacked(tmp_path / "private", {**FTM, "mode": "sound", "epsilon": 8.0}, None)
    assert private.ask(train_local, task(private)).kind == "ok"
    assert Attacked(tmp_path / "one", FTM, None, owners="one").host.policy == Policy()


def test_a_policy_that_is_deleted_opens_nothing(tmp_path):
    party = Attacked(tmp_path, FTM, STRICT)
    (party.directory / "policy.toml").unlink()
    party.reopen()
    assert party.ask(train_local, task(party)).text == "refused by rule 'allow_clear'"


def test_the_policy_of_the_home_counts_before_a_copy_in_the_run(tmp_path):
    party = Attacked(tmp_path, FTM, OPEN)
    assert party.ask(train_local, task(party)).kind == "ok"
    (tmp_path / "home" / "policy.toml").write_text(STRICT)
    party.reopen()
    party.place = (1, 0)
    assert party.ask(train_local, task(party)).text == "refused by rule 'allow_clear'"


@pytest.mark.parametrize(("option", "policy"), [("--strict", Policy.closed()), ("--open", Policy())])
def test_a_policy_can_be_had_with_comments(option, policy, tertulia, tmp_path):
    path = tmp_path / "policy.toml"
    assert tertulia("policy", path, option)[0] == 0
    assert Policy.load(path) == policy
    assert path.read_text().count("\n# ") > 20
    code, _, err = tertulia("policy", path, option)
    assert (code, "exists" in err) == (1, True)
    assert Policy.load(path) == policy


def test_the_strict_example_differs_from_the_open_one():
    assert Policy.parse(strict_example()) != Policy.parse(example())
    with pytest.raises(ConfigError):
        Policy.parse("max_topics = 0")
