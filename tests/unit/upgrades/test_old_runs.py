"""Runs of earlier versions: which go on, which do not, and where their homes are."""

import json

import numpy as np
import pytest

from helpers.formats import homes, unpack
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.models import Topics
from tertulia.runs import config, driver
from tertulia.runs.layout import Run
from tertulia.upgrades import applying
from tertulia.upgrades.looking import look

LOST = ("first", "methods")  # begun before messages had the names of now
GOES_ON = ("ledger-2", "plans", "ledger-3", "packed")


def carried(path):
    items = look(path)
    applying.upgrade(path, items)
    return items


def run_item(items):
    return next(item for item in items if item.kind == "run")


@pytest.mark.parametrize("name", LOST)
def test_a_run_that_cannot_go_on_says_so_and_what_remains(tmp_path, name):
    run = unpack(name, tmp_path) / "runs" / "clear"
    with pytest.raises(ConfigError, match=r"literal_compose.*`tertulia upgrade .*clear` carries over"):
        driver.finish(Run.open(run))
    item = run_item(carried(run))
    assert "it cannot be resumed, begin it anew; what left is in its parties' ledgers" in item.becomes
    with pytest.raises(FormatError, match=r"`tertulia upgrade .*clear` says what remains of it"):
        driver.finish(Run.open(run))
    assert "it cannot be resumed" in run_item(look(run)).becomes


def test_runs_that_can_go_on_do(tmp_path):
    found = []
    for name in GOES_ON:
        run = unpack(name, tmp_path) / "runs" / "clear"
        assert run_item(carried(run)).becomes.endswith("it can be resumed")
        found.append(driver.finish(Run.open(run)))
        assert "resumed" not in run_item(look(run)).becomes
    assert all(len(model.history) > 10 for model in found)
    by_this_trainer = [model.topic_word for model in found[-2:]]  # the others were begun by an earlier one
    np.testing.assert_array_equal(*by_this_trainer)


def test_a_plan_that_lacks_a_new_setting_is_named_as_now(tmp_path):
    run = unpack("packed", tmp_path) / "runs" / "clear"
    for party in (run / "parties").iterdir():
        facts = json.loads((party / "party.json").read_text())
        del facts["plan"]["settings"]["merge"]  # as if there had been no such setting
        (party / "party.json").write_text(json.dumps(facts))
        agreed = json.loads((party / "agreed.json").read_text())
        (party / "agreed.json").write_text(json.dumps(agreed | {"plan": Plan.from_dict(facts["plan"]).hash}))
    items = carried(run)
    assert [item.becomes for item in items if item.kind == "party"] == ["as now: plan", "as now: plan"]
    assert isinstance(driver.finish(Run.open(run)), Topics)


def test_a_plan_that_asks_for_something_else_is_not_renamed(tmp_path):
    run = unpack("packed", tmp_path) / "runs" / "clear"
    path = run / "parties" / "north" / "party.json"
    facts = json.loads(path.read_text())
    facts["plan"]["settings"]["topics"] = 7
    path.write_text(json.dumps(facts))
    items = carried(run)
    assert "something else than they have agreed to" in run_item(items).becomes
    assert json.loads(path.read_text()) == facts


def test_a_home_is_found_by_the_run_that_was_charged_there(tmp_path, monkeypatch):
    root = unpack("first", tmp_path)
    (tmp_path / "elsewhere" / "homes" / "north").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")  # where a home of the same name is no home of this run
    run, party = root / "runs" / "sound", root / "runs" / "sound" / "parties" / "north"
    with pytest.raises(ConfigError, match="tertulia upgrade"):
        PartyConfig.load(party)
    carried(run)
    assert PartyConfig.load(party).home == str(root / "homes" / "north")
    assert driver.settings_of(Run.open(run)).parties["north"].home == str(root / "homes" / "north")


def test_a_home_that_is_not_found_is_not_begun_anew(tmp_path):
    root = unpack("first", tmp_path)
    (root / "homes").rename(root / "moved")
    run = root / "runs" / "sound"
    wrong = [item for item in carried(run) if item.wrong]
    assert [item.path.name for item in wrong] == ["north", "south"]
    assert "no ledger of this run is there from here" in wrong[0].becomes
    with pytest.raises(ConfigError, match="depends on the working directory"):
        PartyConfig.load(run / "parties" / "north")
    assert not (root / "homes").exists()


def test_a_home_of_the_working_directory_stays_where_its_ledger_is(tmp_path, monkeypatch):
    root = unpack("first", tmp_path)
    (root / "settings").mkdir()
    text = (root / "sound.toml").read_text().replace('"north.jsonl"', '"../north.jsonl"')
    text = text.replace('"south.jsonl"', '"../south.jsonl"').replace("words.txt", "../words.txt")
    file = root / "settings" / "sound.toml"
    file.write_text(text.replace("policy.toml", "../policy.toml"))
    monkeypatch.chdir(root)
    carried(file)
    assert config.load(file).parties["south"].home == str(root / "homes" / "south")
    assert homes(root / "settings") == []
