"""Backups that an upgrade makes beside the files that it changes: complete before the first change, and private.

A backup lies beside a folder that somebody else may have made, so an undo trusts it no more than the folder. It may
name convertible files below the upgraded path, and copies of them in its own directory, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from tertulia._disk import atomic_write, private_directory, private_file, sync_directory, sync_file, sync_files, write
from tertulia._kinds import check_fields
from tertulia.errors import ConfigError, FormatError
from tertulia.operations.upgrades.formats import BACKUP, Change, is_convertible, read_json

_LIST = "backup.json"
_FORMAT = 1
_COPY = re.compile(r"\d{6}-(?P<name>[^/\\]+)")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Kept:
    """A file as it was before an upgrade."""

    path: str  # relative to the backup's parent
    copy: str  # its name in the backup
    mode: int
    before: str  # SHA-256 of the old contents
    after: str  # SHA-256 of the new contents


class Backup:
    """One backup: a directory beside the upgraded path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        facts = read_json(directory / _LIST)
        if facts.get("format") != _FORMAT:
            raise FormatError(f"{directory} was made by a newer version: undo with that version")
        try:
            self.files = [Kept(**fields) for fields in facts["files"]]
            for kept in self.files:
                check_fields(Kept, vars(kept))
            self.done = bool(facts["done"])
        except (KeyError, TypeError, FormatError) as error:
            raise FormatError(
                f"{directory / _LIST} is damaged ({error}): nothing is undone; put files back from {directory}"
            ) from error

    def place_of(self, kept: Kept) -> Path:
        """Return the path of a file."""
        return self.directory.parent / kept.path

    def check(self, root: Path) -> None:
        """Raise `FormatError` unless the backup names only files that an upgrade of `root` changes, with copies."""
        if self.directory.is_symlink():
            raise FormatError(f"{self.directory} is a link, and no backup: nothing is undone")
        for kept in self.files:
            place = _place_in(root, kept.path)
            if not (_HASH.fullmatch(kept.before) and _HASH.fullmatch(kept.after)):
                raise FormatError(f"the backup's hashes of {kept.path} are damaged: nothing is undone")
            if _hash(self._copy_of(kept, place.name)) != kept.before:
                raise FormatError(f"{self.directory / kept.copy} is not what was backed up: nothing is undone")

    def _copy_of(self, kept: Kept, name: str) -> Path:
        match, place = _COPY.fullmatch(kept.copy), self.directory / kept.copy
        if match is None or match["name"] != name or place.is_symlink() or not place.is_file():
            raise FormatError(
                f"{self.directory} names {kept.copy[:100]!r} as its copy of {name}, which it is not: nothing is undone"
            )
        return place

    def check_unchanged(self, kept: Kept) -> None:
        """Raise `ConfigError` if a file was edited since the upgrade: an undo would lose the edit."""
        place = self.place_of(kept)
        if not place.exists() or _hash(place) not in (kept.before, kept.after):
            raise ConfigError(
                f"{place} was changed since the upgrade: move it away first; as it was, it is in {self.directory}"
            )

    def finish(self) -> None:
        """Record that all changes were made."""
        atomic_write(self.directory / _LIST, _list(self.files, done=True))

    def restore(self, kept: Kept) -> None:
        """Restore a file atomically."""
        path = self.place_of(kept)
        part = path.with_name(f"{path.name}.part")
        part.unlink(missing_ok=True)  # left by a crash, or a link
        shutil.copyfile(self.directory / kept.copy, private_file(part))
        part.chmod(kept.mode & 0o777)
        sync_file(part)
        part.replace(path)
        sync_directory(path.parent)

    def remove(self) -> None:
        """Delete the backup. It is renamed first: the next backup deletes the remains of a crash."""
        shutil.rmtree(self.directory.rename(_part(self.directory)))


def backups_of(root: Path) -> list[Backup]:
    """List the backups of a path, oldest first."""
    found = [(int(number), path) for path, number in _numbered(root) if (path / _LIST).exists()]
    return [Backup(path) for _, path in sorted(found)]


def backup_for(root: Path, changes: Sequence[Change]) -> Backup:
    """Take the backup of a crashed upgrade if it holds the files of these changes; otherwise make a new one."""
    last = backups_of(root)[-1:]
    if last and not last[0].done:
        places = {last[0].place_of(kept).resolve() for kept in last[0].files}
        if {change.path.resolve() for change in changes} <= places:
            return last[0]
    number = max([0, *(int(number) for _, number in _numbered(root))]) + 1
    target = root.with_name(f"{root.name}{BACKUP}{number}")
    part = _part(target)
    shutil.rmtree(part, ignore_errors=True)  # left by a crash
    try:
        private_directory(part)
        files = [_copy(change, n, root.parent, part) for n, change in enumerate(changes)]
        write(part / _LIST, _list(files, done=False), private=True)
        sync_files(part)
        part.rename(target)
        sync_directory(root.parent)
    except OSError as error:
        raise ConfigError(f"no backup can be made in {root.parent} ({error.strerror}): nothing was changed") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Backup(target)


def _list(files: Sequence[Kept], done: bool) -> bytes:
    return json.dumps({"format": _FORMAT, "done": done, "files": [asdict(kept) for kept in files]}, indent=1).encode()


def _part(target: Path) -> Path:
    """Return the name of a backup that is being made or deleted."""
    return target.with_name(f".{target.name}.part")


def _copy(change: Change, number: int, base: Path, into: Path) -> Kept:
    path, name = change.path, f"{number:06d}-{change.path.name}"
    shutil.copyfile(path, private_file(into / name))
    relative = (path.parent.resolve() / path.name).relative_to(base).as_posix()
    after = hashlib.sha256(change.data).hexdigest()
    return Kept(relative, name, path.stat().st_mode & 0o7777, _hash(into / name), after)


def _place_in(root: Path, path: str) -> Path:
    """Resolve a path of a backup; raise `FormatError` if no upgrade of `root` changes it, or if it is behind a link."""
    parts = PurePosixPath(path).parts
    within = len(parts) > 0 and (parts[0] == root.name if root.is_dir() else True)
    plain = not path.startswith("/") and ".." not in parts and "\0" not in path
    if not (within and plain and is_convertible(parts[-1])):
        raise FormatError(f"the backup names {path[:100]!r}, which no upgrade of {root} changes: nothing is undone")
    place = root.parent
    for part in parts:
        place = place / part
        if place.is_symlink():
            raise FormatError(f"{place} is a link, and no upgrade has written there: nothing is undone")
    return place


def _numbered(root: Path) -> list[tuple[Path, str]]:
    found = [(path, path.name.removeprefix(root.name + BACKUP)) for path in root.parent.glob("*" + BACKUP + "*")]
    return [(path, number) for path, number in found if path.name.startswith(root.name) and number.isdecimal()]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
