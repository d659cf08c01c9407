"""Runs started from four working directories would have four ledgers and four budgets."""

import json

import pytest

from helpers.attacks_noise import corpus_of, party
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyHost
from tertulia.runs import settings as config
from tertulia.runs.settings import RunSettings

TOML = '[parties.north]\npath = "north.txt"\nhome = "homes/north"\n'


def test_a_home_is_the_same_from_every_working_directory(tmp_path, monkeypatch):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "run.toml").write_text(TOML)
    homes = set()
    for where, path in ((".", "study/run.toml"), ("study", "run.toml"), ("study", "../study/run.toml")):
        monkeypatch.chdir(tmp_path / where)
        homes.add(config.load(path).parties["north"].home)
    assert homes == {str(tmp_path / "study" / "homes" / "north")}


def test_a_home_that_depends_on_the_working_directory_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="working directory"):
        RunSettings(parties={"north": {"path": "x.txt", "home": "homes/north"}})
    host = party(tmp_path / "north", corpus_of(["ache burn"]))
    path = host.directory / "party.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "home": "home"}))
    with pytest.raises(ConfigError, match="depends on the working directory"):
        PartyHost(host.directory)
