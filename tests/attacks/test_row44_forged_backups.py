"""A folder comes with a forged backup beside it: `upgrade --undo` wrote, deleted and copied where the backup said."""

import hashlib
import json

import pytest

from tertulia.errors import FormatError
from tertulia.operations.upgrades.upgrade import undo


def tree(root):
    """Every file below a folder: its mode and its bytes."""
    return {str(p.relative_to(root)): (p.stat().st_mode, p.read_bytes()) for p in root.rglob("*") if p.is_file()}


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def place(tmp_path):
    """A folder `run` with settings, a home of its reader's beside it, and a backup that holds nothing yet."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".bashrc").write_text("mine\n")
    (tmp_path / "home" / "secret.toml").write_text("password\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.toml").write_text("seed = 2\n")
    (tmp_path / "run" / "noise.key").write_bytes(b"k" * 32)
    (tmp_path / "run.before-upgrade-1").mkdir()
    return tmp_path


def forge(place, *files):
    facts = {"format": 1, "done": True, "files": list(files)}
    (place / "run.before-upgrade-1" / "backup.json").write_text(json.dumps(facts))


def entry(place, path, data=b"evil\n", copy="000000-{name}", **changes):
    """An entry of a backup, with its copy, and with hashes that fit."""
    name = path.rpartition("/")[2]
    now = place / path
    after = digest(now.read_bytes()) if now.is_file() else digest(b"")
    copy = copy and copy.format(name=name)
    if copy and "/" not in copy and not (place / "run.before-upgrade-1" / copy).is_symlink():
        (place / "run.before-upgrade-1" / copy).write_bytes(data)
    return {"path": path, "copy": copy, "mode": 0o644, "before": digest(data), "after": after} | changes


def refused(place):
    before = tree(place)
    with pytest.raises(FormatError, match="nothing is undone"):
        undo(place / "run")
    assert tree(place) == before


@pytest.mark.parametrize(
    "path",
    ["home/.bashrc", "run/../home/.bashrc", "../../etc/run.toml", "home/secret.toml", "run/notes.txt", "run", "", "."],
)
def test_files_elsewhere_and_of_other_names_are_not_overwritten(place, path):
    forge(place, entry(place, path))
    refused(place)


def test_a_path_from_the_root_is_refused(place):
    forge(place, entry(place, "run/run.toml") | {"path": str(place / "home" / "secret.toml")})
    refused(place)


@pytest.mark.parametrize("path", ["home/.bashrc", "run/run.toml"])
def test_no_file_is_deleted(place, path):
    forge(place, entry(place, path, copy=None, before="", after=None))
    refused(place)


@pytest.mark.parametrize("name", ["noise.key", "ledger.sqlite", "model.json"])
def test_ledgers_keys_and_models_are_not_overwritten(place, name):
    forge(place, entry(place, f"run/{name}"))
    refused(place)


def test_a_copy_is_a_file_of_the_backup(place):
    for copy in ("../home/secret.toml", "secret.toml", "000000-other.toml"):
        forge(place, entry(place, "run/run.toml", copy=copy))
        refused(place)
    (place / "run.before-upgrade-1" / "000001-run.toml").symlink_to(place / "home" / "secret.toml")
    forge(place, entry(place, "run/run.toml", b"password\n", copy="000001-{name}"))
    refused(place)


def test_links_lead_nowhere(place):
    (place / "run" / "sub").symlink_to(place / "home")
    forge(place, entry(place, "run/sub/secret.toml"))
    refused(place)
    (place / "run" / "run.toml").unlink()
    (place / "run" / "run.toml").symlink_to(place / "home" / ".bashrc")
    forge(place, entry(place, "run/run.toml"))
    refused(place)


def test_a_copy_that_was_changed_is_not_brought_back(place):
    forge(place, entry(place, "run/run.toml", before=digest(b"something else")))
    refused(place)


def test_a_mode_gives_no_more_than_files_have(place):
    forge(place, entry(place, "run/run.toml", mode=0o6755))
    undo(place / "run")
    assert (place / "run" / "run.toml").stat().st_mode & 0o7777 == 0o755
