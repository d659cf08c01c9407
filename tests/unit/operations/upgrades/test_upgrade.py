"""A made-up conversion: recognised, backed up, applied, undone; and formats that are refused."""

import json
import sqlite3
from contextlib import closing

import pytest

from tertulia.errors import ConfigError, FormatError
from tertulia.federation import faults
from tertulia.operations.upgrades import formats
from tertulia.operations.upgrades.formats import TODAYS, Conversion, recognise
from tertulia.operations.upgrades.upgrade import undo, upgrade
from tertulia.privacy.home import KEY, LEDGER, open_home

EARLIER = '# mine\nseeds = 3\n\n[method]\nname = "ftm"\n'
TODAY = EARLIER.replace("seeds", "seed")


@pytest.fixture
def conversion(monkeypatch):
    one = Conversion("`seeds` is now `seed`", "*.toml", lambda data: data.replace(b"seeds =", b"seed ="))
    monkeypatch.setattr(formats, "CONVERSIONS", [one])


@pytest.fixture
def folder(tmp_path, conversion):
    """Two files of the earlier format, and one of today's."""
    root = tmp_path / "folder"
    root.mkdir()
    for name, text in {"a.toml": EARLIER, "b.toml": EARLIER, "c.toml": TODAY}.items():
        (root / name).write_text(text)
        (root / name).chmod(0o640)
    return root


def texts(root):
    return [(root / f"{name}.toml").read_text() for name in "abc"]


def test_conversions_are_reported_by_file_and_nothing_is_written(folder):
    items = recognise(folder)
    assert [(item.path.name, item.becomes) for item in items] == [
        ("a.toml", "`seeds` is now `seed`"),
        ("b.toml", "`seeds` is now `seed`"),
        ("c.toml", TODAYS),
    ]
    assert not any(item.wrong for item in items)
    assert texts(folder) == [EARLIER, EARLIER, TODAY]


def test_files_are_converted_with_a_private_backup_and_a_repeat_changes_nothing(folder):
    backup = upgrade(folder, recognise(folder))
    assert texts(folder) == [TODAY] * 3
    assert (folder / "a.toml").stat().st_mode & 0o777 == 0o640
    assert backup.directory == folder.with_name("folder.before-upgrade-1")
    assert backup.directory.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in backup.directory.iterdir()} == {0o600}
    assert upgrade(folder, recognise(folder)) is None


def test_undo_restores_every_byte_and_removes_the_backup(folder, tertulia):
    assert tertulia("upgrade", folder)[0] == 0
    code, out, err = tertulia("upgrade", folder, "--undo")
    assert code == 0
    assert "is as it was before the upgrade" in out + err
    assert texts(folder) == [EARLIER, EARLIER, TODAY]
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]
    with pytest.raises(ConfigError, match="no backup"):
        undo(folder)


def test_a_file_that_was_edited_since_is_not_overwritten(folder):
    upgrade(folder, recognise(folder))
    (folder / "b.toml").write_text("mine = 1\n")
    with pytest.raises(ConfigError, match=r"b\.toml was changed since the upgrade"):
        undo(folder)
    assert texts(folder) == [TODAY, "mine = 1\n", TODAY]


class Killed(Exception):
    pass


@pytest.fixture
def kill_at():
    """Raise at a fault point, at the n-th time."""

    def arm(name, n=1):
        left = [n]

        def passed(point):
            left[0] -= point == f"upgrade.{name}"
            if left[0] == 0 and point == f"upgrade.{name}":
                raise Killed

        faults.arm(passed)

    yield arm
    faults.arm(lambda _: None)


@pytest.mark.parametrize(("point", "n"), [("after_backup", 1), ("after_change", 1), ("after_change", 2)])
def test_an_upgrade_that_was_killed_is_completed_with_the_same_backup(folder, kill_at, point, n):
    kill_at(point, n)
    with pytest.raises(Killed):
        upgrade(folder, recognise(folder))
    upgrade(folder, recognise(folder))
    assert texts(folder) == [TODAY] * 3
    assert len(list(folder.parent.glob("folder.before-upgrade-*"))) == 1
    undo(folder)
    assert texts(folder) == [EARLIER, EARLIER, TODAY]


def test_an_undo_that_was_killed_is_completed(folder, kill_at):
    upgrade(folder, recognise(folder))
    kill_at("after_restore")
    with pytest.raises(Killed):
        undo(folder)
    undo(folder)
    assert texts(folder) == [EARLIER, EARLIER, TODAY]


def test_ledgers_and_keys_are_never_converted():
    assert not any(map(formats.is_convertible, (LEDGER, KEY, "model.json", "corpus.json", "topics.safetensors")))
    assert all(map(formats.is_convertible, ("run.json", "party.json", "run.toml", "policy.toml")))


def test_settings_that_cannot_be_read_are_refused(tmp_path, tertulia):
    (tmp_path / "run.toml").write_text('[method]\nname = "ftm"\nliteral_compose = true\n')
    code, out, _ = tertulia("upgrade", tmp_path, "--json")
    (row,) = json.loads(out)["upgrade"]
    assert code == 1
    assert "it is damaged, or made by an earlier, unreleased version (" in row["becomes"]
    assert "literal_compose" in row["becomes"]


def home_of_format(directory, version):
    open_home(directory).ledger.close()
    with closing(sqlite3.connect(directory / LEDGER)) as db:
        db.execute(f"PRAGMA user_version={version}")


def test_a_home_of_an_unreleased_version_is_refused_and_kept(tmp_path):
    home_of_format(tmp_path / "home", 1)
    (item,) = recognise(tmp_path / "home")
    assert item.wrong
    assert item.becomes.startswith("it was made by an earlier, unreleased version: keep it, and begin a home again")


def test_a_home_without_its_key_is_refused(tmp_path):
    open_home(tmp_path / "home").ledger.close()
    (item,) = recognise(tmp_path / "home")
    assert item.becomes == TODAYS
    (tmp_path / "home" / KEY).unlink()
    (item,) = recognise(tmp_path / "home")
    assert item.wrong
    assert f"{KEY} is missing" in item.becomes


@pytest.mark.parametrize("what", ["ledger", "run", "model", "corpus"])
def test_a_newer_format_is_refused_in_one_sentence(tmp_path, tertulia, what):
    if what == "ledger":
        home_of_format(tmp_path, 99)
    else:
        (tmp_path / f"{what}.json").write_text('{"format": 99}')
    code, _, err = tertulia("upgrade", tmp_path)
    assert code == 1
    assert "was made by a newer version: it has format 99" in err
    assert len(err.strip().splitlines()) == 1


def test_a_path_that_holds_nothing_of_tertulia(tmp_path):
    (tmp_path / "notes.toml").write_text("a = 1\n")
    with pytest.raises(ConfigError, match="holds nothing that Tertulia has written"):
        recognise(tmp_path)
    with pytest.raises(ConfigError, match="there is no"):
        recognise(tmp_path / "nowhere")
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(FormatError, match="is damaged"):
        recognise(tmp_path)
