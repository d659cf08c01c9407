"""A home: ledger and key are made together, belong to each other, and one half alone is refused with a remedy."""

import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from tertulia.errors import ConfigError, FormatError
from tertulia.privacy import home
from tertulia.privacy.home import KEY, LEDGER, open_home
from tertulia.privacy.ledger import Release
from tertulia.privacy.mechanisms import DiscreteLaplace, Mechanism
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.snapshots import read_ledger

LAPLACE = DiscreteLaplace("counts", 1, 1.0)


def release(mechanism: Mechanism = LAPLACE, name: str = "a") -> Release:
    x = np.zeros(4)
    return Release.of(mechanism, id=name, party="north", round=1, step="m:s", verb="sum", message_hash="ff", x=x)


def test_the_key_file_is_made_once_and_is_secret(tmp_path):
    first, again = open_home(tmp_path / "home").key, open_home(tmp_path / "home").key
    path = tmp_path / "home" / KEY
    assert first == again
    assert first.secret
    assert len(set(first.key)) > 8
    assert path.stat().st_mode & 0o777 == 0o600
    assert {file.name for file in path.parent.iterdir()} - {f"{LEDGER}-shm", f"{LEDGER}-wal"} == {KEY, LEDGER}
    assert first.key.hex() not in repr(first)


def test_a_key_that_others_can_read_is_refused(tmp_path):
    open_home(tmp_path)
    (tmp_path / KEY).chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        open_home(tmp_path)


def test_a_truncated_key_is_refused(tmp_path):
    open_home(tmp_path)
    (tmp_path / KEY).write_bytes(b"short")
    with pytest.raises(FormatError, match="32 bytes, not 5"):
        open_home(tmp_path)


def test_processes_that_race_for_a_home_agree(tmp_path):
    code = f"from tertulia.privacy.home import open_home; from pathlib import Path; \
        print(open_home(Path({str(tmp_path / 'home')!r})).key.key.hex())"
    racers = [subprocess.Popen([sys.executable, "-c", code.strip()], stdout=subprocess.PIPE) for _ in range(3)]
    keys = {racer.communicate()[0].decode().strip() for racer in racers}
    assert keys == {open_home(tmp_path / "home").key.key.hex()}


@pytest.mark.parametrize(("lost", "other"), [(KEY, LEDGER), (LEDGER, KEY)])
def test_a_missing_half_is_an_error_that_says_how_to_restore(tmp_path, lost, other):
    opened = open_home(tmp_path)
    opened.ledger.record(release())
    opened.ledger.close()
    shutil.move(tmp_path / lost, tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(FormatError, match=rf"{lost} is missing.*To restore: .*tertulia ledger verify") as error:
            open_home(tmp_path)
        assert other in str(error.value)
    shutil.move(tmp_path / "elsewhere", tmp_path / lost)
    assert open_home(tmp_path).ledger.releases() == [release()]


def test_halves_of_two_homes_do_not_fit(tmp_path):
    for name in "ab":
        open_home(tmp_path / name).ledger.close()
    shutil.copy(tmp_path / "a" / KEY, tmp_path / "b" / KEY)
    with pytest.raises(FormatError, match="belongs to another noise key"):
        open_home(tmp_path / "b")


@pytest.mark.parametrize("when", ["before the ledger", "after the ledger"])
def test_a_crash_while_a_home_is_made_is_made_good(tmp_path, monkeypatch, when):
    class Killed(Exception):
        pass

    def die(*_, **__):
        raise Killed

    if when == "before the ledger":
        monkeypatch.setattr(home, "Ledger", die)
    else:
        monkeypatch.setattr(home.Path, "rename", die)
    with pytest.raises(Killed):
        open_home(tmp_path)
    monkeypatch.undo()
    key = NoiseKey.load(tmp_path / f"{KEY}.new")
    assert open_home(tmp_path).key == key == open_home(tmp_path).key


@pytest.mark.parametrize("with_key", [True, False])
def test_a_home_of_an_earlier_format_is_refused_and_stays_as_it_is(tmp_path, with_key):
    """Else somebody who may write to the ledger could write one of the old format, whose chain needs no key."""
    opened = open_home(tmp_path)
    opened.ledger.record(release())
    opened.ledger.close()
    with sqlite3.connect(tmp_path / LEDGER) as db:
        db.execute("DELETE FROM entries WHERE seq = 0")
        db.execute("PRAGMA user_version=2")
    db.close()
    if not with_key:
        (tmp_path / KEY).unlink()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for read in (open_home, read_ledger):
        with pytest.raises(FormatError, match=r"ledger\.sqlite was made by an earlier, unreleased version"):
            read(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_key_never_takes_a_ledger_that_names_none(tmp_path):
    open_home(tmp_path).ledger.close()
    with sqlite3.connect(tmp_path / LEDGER) as db:
        db.execute("DELETE FROM entries")
    db.close()
    for read in (open_home, read_ledger):
        with pytest.raises(FormatError, match="is not the ledger of"):
            read(tmp_path)
