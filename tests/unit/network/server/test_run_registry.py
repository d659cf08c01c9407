"""Proposals, approvals and states of runs at a server."""

import json

import pytest

from helpers.sites import MEMBERS, Sites
from tertulia.errors import ConfigError, FormatError
from tertulia.network.server.run_registry import ABANDONED, FINISHED, STOPPED, UNDER_WAY


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path)


def test_a_change_of_file_or_roster_makes_another_proposal(sites):
    first = sites.registry.current()
    assert first.missing == list(MEMBERS)
    assert first.plan == ""
    sites.join("north")
    second = sites.registry.current()
    assert second.run != first.run
    assert second.missing == ["south", "east"]
    assert sites.registry.current().run == second.run
    sites.edit("seed = 0", "seed = 1")
    assert sites.registry.current().run != second.run


def test_start_names_who_is_missing(sites):
    sites.join("north", "south")
    with pytest.raises(ConfigError, match="not all members have joined: east"):
        sites.registry.start()
    sites.join("east")
    sites.approve("south")
    with pytest.raises(ConfigError, match=r"1 of 3 members have approved, and 2 must: .* from north, east"):
        sites.registry.start()
    sites.approve("east")
    assert sites.registry.start().parties == MEMBERS


def test_a_run_under_way_pins_what_was_agreed(sites):
    run = sites.agree().registry.start()
    sites.edit("seed = 0", "seed = 1")
    sites.server.members.revoke("east")
    assert sites.registry.current().run == run.id
    assert sites.registry.edited()
    with pytest.raises(ConfigError, match=r"under way.*what was edited since counts for the next one"):
        sites.registry.start()
    sites.edit("seed = 1", "seed = maybe")  # broken: members still see what is under way
    assert json.loads(sites.registry.proposal())["run"] == run.id
    sites.edit("seed = maybe", "seed = 1")
    sites.registry.end(run.id, FINISHED)
    assert sites.registry.current().roster == ("north", "south")
    assert sites.registry.newest() == run.id


def test_a_run_that_stopped_goes_on_and_one_that_is_abandoned_does_not(sites):
    run = sites.agree().registry.start()
    sites.registry.end(run.id, STOPPED, "the disk is full")
    assert sites.registry.under_way() is None
    assert sites.registry.start().id == run.id
    assert sites.registry.state(run.id).state == UNDER_WAY
    assert sites.registry.under_way().id == run.id
    assert sites.registry.abandon() == run.id
    assert sites.registry.state(run.id).state == ABANDONED
    with pytest.raises(ConfigError, match="no unfinished run"):
        sites.registry.abandon()


def test_a_finished_run_is_not_run_again(sites):
    run = sites.agree().registry.start()
    sites.registry.end(run.id, FINISHED)
    with pytest.raises(ConfigError, match="is finished, its model is"):
        sites.registry.start()


@pytest.mark.parametrize("name", ["approvals.json", "proposal.json"])
def test_a_damaged_file_is_named(sites, name):
    sites.agree()
    (sites.server.directory / name).write_text("{")
    with pytest.raises(FormatError):
        sites.registry.start()
