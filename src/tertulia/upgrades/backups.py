"""Backups that an upgrade makes beside what it changes: whole before anything is changed, and for their owner alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tertulia._disk import atomic_write, private_directory, private_file, sync_directory, sync_files, write
from tertulia.errors import ConfigError, DirectoryInUse, FormatError
from tertulia.privacy import chain
from tertulia.privacy.home import KEY, LEDGER, alone_at
from tertulia.privacy.snapshots import contents, copy_whole, snapshot
from tertulia.upgrades.items import Change, HomeChange, read_json
from tertulia.upgrades.looking import BACKUP

_LIST = "backup.json"
_FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """A file as it was, or that there was none."""

    path: str  # from the backup's own place
    copy: str | None  # its name in the backup; None: the upgrade made the file
    mode: int
    before: str  # the hash of its bytes
    after: str | None  # the hash of what the upgrade writes; None: it is part of a home


class Backup:
    """One backup, a directory beside what was upgraded."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        facts = read_json(directory / _LIST)
        if facts.get("format") != _FORMAT:
            raise FormatError(f"{directory} was made by a newer version: undo with that version")
        try:
            self.files = [Kept(**fields) for fields in facts["files"]]
            self.homes = [str(home) for home in facts["homes"]]
            self.done = bool(facts["done"])
        except (KeyError, TypeError) as error:
            raise FormatError(f"{directory / _LIST} is damaged ({error}): put files back from {directory}") from error

    def place_of(self, kept: Kept) -> Path:
        """Where a file is, or was."""
        return self.directory.parent / kept.path

    def finish(self) -> None:
        """Note that everything was changed."""
        facts = {"format": _FORMAT, "done": True, "homes": self.homes, "files": [asdict(kept) for kept in self.files]}
        atomic_write(self.directory / _LIST, json.dumps(facts, indent=1).encode())

    def check_home(self, directory: Path) -> None:
        """Raise `DirectoryInUse` if a home's ledger does not say what it said when the backup was made."""
        kept = self._ledger_of(directory)
        if kept is None or _contents(directory / LEDGER) != _contents(self.directory / kept):
            raise DirectoryInUse(f"{directory / LEDGER} was charged since its backup was made: run the command again")

    def added_since(self, directory: Path) -> int:
        """How many entries a home's ledger has more than the backup; raise `FormatError` if it has others, or fewer."""
        kept = self._ledger_of(directory)
        if not (directory / LEDGER).exists():
            raise FormatError(f"{directory / LEDGER} is gone, and may have been charged meanwhile: nothing is undone")
        before, now = _contents(self.directory / kept) if kept else [], _contents(directory / LEDGER)
        if now[: len(before)] != before:
            raise FormatError(f"{directory / LEDGER} is not the ledger that was upgraded: nothing is undone")
        return len(now) - len(before)

    def _ledger_of(self, directory: Path) -> str | None:
        path = directory / LEDGER
        return next((kept.copy for kept in self.files if self.place_of(kept).resolve() == path.resolve()), None)

    def restore(self, kept: Kept) -> None:
        """Bring a file back as it was, whole or not at all."""
        path = self.place_of(kept)
        if kept.copy is None:
            path.unlink(missing_ok=True)
            return
        part = path.with_name(f"{path.name}.part")
        shutil.copyfile(self.directory / kept.copy, private_file(part))
        part.chmod(kept.mode)
        descriptor = os.open(part, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        part.replace(path)
        sync_directory(path.parent)

    def remove(self) -> None:
        """Forget the backup: its name first, so that what a crash leaves is none; the next backup clears it away."""
        shutil.rmtree(self.directory.rename(_part(self.directory)))


def backups_of(root: Path) -> list[Backup]:
    """The backups of a path, oldest first."""
    found = [(int(number), path) for path, number in _numbered(root) if (path / _LIST).exists()]
    return [Backup(path) for _, path in sorted(found)]


def backup_for(root: Path, changes: Sequence[Change]) -> Backup:
    """The backup of a crashed upgrade, if these are the changes that it still had to make; else a new one."""
    last = backups_of(root)[-1:]
    paths = [path for change in changes for path, _ in _files_of(change)]
    if last and not last[0].done and {path.resolve() for path in paths} <= _places(last[0]):
        return last[0]
    number = max([0, *(int(number) for _, number in _numbered(root))]) + 1
    target = root.with_name(f"{root.name}{BACKUP}{number}")
    part = _part(target)
    shutil.rmtree(part, ignore_errors=True)  # what a crash left
    try:
        private_directory(part)
        files = [kept for change in changes for kept in _keep(change, root.parent, part)]
        homes = [os.path.relpath(c.directory, root.parent) for c in changes if isinstance(c, HomeChange)]
        facts = {"format": _FORMAT, "done": False, "homes": homes, "files": [asdict(kept) for kept in files]}
        write(part / _LIST, json.dumps(facts, indent=1).encode(), private=True)
        sync_files(part)
        part.rename(target)
        sync_directory(root.parent)
    except OSError as error:
        raise ConfigError(f"no backup can be made in {root.parent} ({error.strerror}): nothing was changed") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Backup(target)


def _part(target: Path) -> Path:
    """The name of a backup that is not whole yet, or no more."""
    return target.with_name(f".{target.name}.part")


def _keep(change: Change, base: Path, into: Path) -> list[Kept]:
    """Copy the files of a change."""
    if isinstance(change, HomeChange):
        with alone_at(change.directory):
            return [_copy(path, after, base, into) for path, after in _files_of(change)]
    return [_copy(path, after, base, into) for path, after in _files_of(change)]


def _files_of(change: Change) -> list[tuple[Path, str | None]]:
    """The files that a change writes, and the hash of what it writes; None: not known before."""
    if not isinstance(change, HomeChange):
        return [(change.path, hashlib.sha256(change.data).hexdigest())]
    names = [LEDGER, *(f"{LEDGER}.format-{version}" for version in range(1, chain.FORMAT))]
    if change.fixed_key is None:  # a key comes back before its ledger, and goes after it: a ledger is never without one
        names.insert(0 if (change.directory / KEY).exists() else len(names), KEY)
    return [(change.directory / name, None) for name in names]


def _copy(path: Path, after: str | None, base: Path, into: Path) -> Kept:
    relative = os.path.relpath(path, base)
    if not path.exists():
        return Kept(relative, None, 0, "", after)
    name = f"{sum(1 for _ in into.iterdir()):06d}-{path.name}"
    if path.name == LEDGER:
        copy_whole(path, into / name)
    else:
        shutil.copyfile(path, private_file(into / name))
    return Kept(relative, name, path.stat().st_mode & 0o7777, _hash(into / name), after)


def _places(backup: Backup) -> set[Path]:
    return {backup.place_of(kept).resolve() for kept in backup.files}


def _numbered(root: Path) -> list[tuple[Path, str]]:
    found = [(path, path.name.removeprefix(root.name + BACKUP)) for path in root.parent.glob("*" + BACKUP + "*")]
    return [(path, number) for path, number in found if path.name.startswith(root.name) and number.isdecimal()]


def _contents(path: Path) -> list[tuple[str, str]]:
    with snapshot(path) as db:
        return contents(db)


def hash_or_none(path: Path) -> str | None:
    """The hash of a file's bytes, if it is there."""
    return _hash(path) if path.exists() else None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
