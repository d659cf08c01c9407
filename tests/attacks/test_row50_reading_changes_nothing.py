"""A run's directory of somebody else names a folder as a party's home: commands that only read wrote a ledger there."""

import dataclasses
import gc
import shutil
import sqlite3

import pytest
from typer.testing import CliRunner

from helpers.runs import prepared
from helpers.texts import halves
from tertulia.cli.main import app
from tertulia.errors import TertuliaError, Unreleased
from tertulia.federation.party.host import PartyConfig
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import hosts_of

COMMANDS = (("disclosures",), ("privacy",), ("privacy", "--all"), ("report",), ("ledger", "show"), ("ledger", "export"))


def state(folder):
    """Everything below a folder: modes, times of change and bytes; of folders the mode."""
    return {
        str(p): (p.stat().st_mode, None if p.is_dir() else (p.stat().st_mtime_ns, p.read_bytes()))
        for p in (folder, *folder.rglob("*"))
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    made = prepared(
        place / "run", {"north": halves(1), "south": halves(2)}, {"name": "alone", "topics": 2, "sweeps": 2}
    )
    finish(made)
    gc.collect()  # closes the ledgers of the run, which writes to them
    return made


def type_in(place, command, directory):
    party = directory / "parties" / "north"
    more = ["-o", str(place / "out.jsonl")] if command[-1] == "export" else []
    target = party if command[0] == "ledger" else directory
    more += ["--output", str(place / "report.html")] if command[0] == "report" else []
    return CliRunner().invoke(app, [*command, str(target), *more])


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_a_folder_that_a_run_names_as_home_is_not_touched(command, run, tmp_path):
    victim = tmp_path / "photographs"
    victim.mkdir(mode=0o755)
    (victim / "cat.jpg").write_bytes(b"cat")
    directory = run.party_directory("north")
    config = PartyConfig.load(directory)
    dataclasses.replace(config, home=str(victim)).save(directory)
    try:
        before = state(victim)
        type_in(tmp_path, command, run.directory)
        assert state(victim) == before
        dataclasses.replace(config, home=str(tmp_path / "nowhere")).save(directory)
        type_in(tmp_path, command, run.directory)
        assert not (tmp_path / "nowhere").exists()
    finally:
        config.save(directory)


def foreign(victim, run):
    """Put the SQLite file of another program where a ledger would be."""
    db = sqlite3.connect(victim / "ledger.sqlite")
    db.execute("CREATE TABLE photographs (name TEXT)")
    db.execute("INSERT INTO photographs VALUES ('cat.jpg')")
    db.commit()
    db.close()


def readable(victim, run):
    """Put a real ledger there, readable by all."""
    directory = run.party_directory("north")
    shutil.copy(PartyConfig.load(directory).home_in(directory) / "ledger.sqlite", victim / "ledger.sqlite")


@pytest.mark.parametrize("put", [foreign, readable])
@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_a_ledger_or_another_database_that_a_run_names_as_home_keeps_bytes_and_mode(command, put, run, tmp_path):
    victim = tmp_path / "accounts"
    victim.mkdir(mode=0o755)
    put(victim, run)
    (victim / "ledger.sqlite").chmod(0o644)
    directory = run.party_directory("north")
    config = PartyConfig.load(directory)
    before = state(victim)
    try:
        dataclasses.replace(config, home=str(victim)).save(directory)
        result = type_in(tmp_path, command, run.directory)
        assert state(victim) == before
        if command[0] == "ledger" and put is readable:
            assert result.exit_code == 0, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit | TertuliaError)
    finally:
        config.save(directory)


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_a_run_itself_is_only_read(command, run, tmp_path):
    before = state(run.directory)
    result = type_in(tmp_path, command, run.directory)
    assert result.exit_code == 0, result.output
    assert state(run.directory) == before


def test_what_is_read_is_what_was_charged_and_nothing_can_leave(run):
    host = next(host for host in hosts_of(Run.open(run.directory)) if host.config.id == "north")
    assert {release.run for release in host.ledger.releases()} == {run.id}
    host.ledger.verify()
    with pytest.raises(Unreleased):
        _ = host.home
