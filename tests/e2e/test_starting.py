"""`tertulia start` names who has approved, and `--from last` means the last finished run each time."""

import pytest

from helpers.sites import Sites
from tertulia.errors import ConfigError
from tertulia.network.server.run_registry import FINISHED, STOPPED

METHOD = 'name = "consensus"\ntopics = 2\nrounds = 1\nsweeps = 1\nstart_sweeps = 1\nmore_rounds = 2\n'


@pytest.fixture
def sites(tmp_path):
    return Sites(tmp_path, method=METHOD)


def test_start_names_who_has_approved_and_who_has_not(sites, tertulia):
    sites.join("north", "south", "east")
    sites.approve("north", "south")
    code, out, err = tertulia("start", sites.server.directory)
    assert code == 0, err
    assert "has begun, with north, south; its plan is pinned" in out
    assert "no approval yet from east: a member takes part once `tertulia approve` gives it" in out
    sites.registry.end(sites.registry.newest(), STOPPED)
    sites.approve("east")
    code, out, _ = tertulia("start", sites.server.directory)
    assert "has begun, with north, south, east; its plan is pinned" in out
    assert "no approval" not in out


def test_from_last_means_the_last_finished_run_each_time(sites, tertulia):
    place, parties = sites.server.directory, sites.server.file.members
    sites.agree()
    begun = [sites.run().provenance["run"]]
    for _ in range(2):
        code, out, err = tertulia("start", place, "--from", "last")
        assert code == 0, err
        assert f"the next run goes on from run {begun[-1]}" in out
        assert 'start_from = "last"' in (place / "federation.toml").read_text()
        assert sites.registry.current().start["run"] == begun[-1]
        sites.approve(*parties)
        code, out, err = tertulia("start", place, "--from", "last")  # proposed and approved: now it begins
        assert "has begun, with north, south, east" in out, err
        run = sites.registry.under_way()
        assert run.config["start_from"] == begun[-1]
        assert not sites.registry.edited()
        with pytest.raises(ConfigError, match="is under way"):
            sites.registry.start()
        assert sites.finish(run).provenance["continues"]["run"] == begun[-1]
        sites.registry.end(run.id, FINISHED)
        begun.append(run.id)
    assert sites.registry.current().start["run"] == begun[-1]  # proposed by itself, for members to approve
    code, _, err = tertulia("start", place)
    assert (code, "0 of 3 members have approved" in err) == (1, True)


def test_a_run_that_stopped_goes_on_as_it_was_approved(sites, tertulia):
    sites.agree()
    first = sites.run().provenance["run"]
    sites.registry.go_on_from("last")
    sites.approve(*sites.server.file.members)
    run = sites.registry.start()
    sites.registry.end(run.id, STOPPED)
    assert sites.registry.start().id == run.id
    sites.finish(run)
    sites.registry.end(run.id, FINISHED)
    sites.registry.go_on_from(first)  # an id stays what it is
    assert sites.registry.current().start["run"] == first
