"""A party's own file, and the directory of its runs."""

import pytest

from helpers.sites import Sites
from tertulia.errors import ConfigError
from tertulia.federation.party.host import PartyConfig
from tertulia.network.party.party_directory import PartyDirectory, PartyFile, empty_directory


def test_partys_file_says_what_is_wrong():
    given = {"name": "north", "federation": "x", "server": "localhost:1"}
    with pytest.raises(ConfigError, match="there is no method 'nonsense' to offer"):
        PartyFile(**given, methods=("nonsense",))
    with pytest.raises(ConfigError, match="unknown key 'policy'"):
        PartyFile(**given, policy="x")
    with pytest.raises(ConfigError, match=r"unknown key 'documents\.folder'"):
        PartyFile(**given, documents={"folder": "x"})
    with pytest.raises(ConfigError, match=r"choices.topics = 0"):
        PartyFile(**given, choices={"topics": 0})


@pytest.fixture
def approved(tmp_path):
    """The party `north`, and the run that it has approved."""
    sites = Sites(tmp_path).agree()
    return sites.parties["north"], sites.registry.current().run


def test_an_approved_run_is_listed_and_a_forgotten_one_keeps_only_its_config(approved):
    party, run = approved
    directory = party.runs / run
    assert party.run_directories() == [directory]
    assert (directory / "corpus").exists()
    assert party.forget(run) == ["corpus"]
    assert not (directory / "corpus").exists()
    config = PartyConfig.load(directory)
    assert (config.plan, config.source) == (None, None)
    with pytest.raises(ConfigError, match=f"'nonsense' is no run of .*: its runs are {run}"):
        party.forget("nonsense")


def test_a_party_that_leaves_withdraws_every_approval(approved):
    party, run = approved
    assert PartyConfig.load(party.runs / run).plan is not None
    assert party.refuse_runs() == [run]
    assert PartyConfig.load(party.runs / run).plan is None
    assert party.refuse_runs() == []


def test_a_directory_holds_one_party(approved, tmp_path):
    party, _ = approved
    with pytest.raises(ConfigError, match="holds a party already, 'north'"):
        empty_directory(party.directory)
    assert empty_directory(tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_without_a_policy_nothing_leaves_in_clear(approved):
    party, _ = approved
    assert party.policy.allow_clear is not False
    party.policy_path.unlink()
    assert party.policy.allow_clear is False
    assert party.own_settings().policy is None
    assert PartyDirectory(party.directory).home == party.directory.resolve()
