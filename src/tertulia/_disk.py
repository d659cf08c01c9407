"""Writing so that a crash or a full disk leaves what was there before."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from tertulia.errors import FormatError, JournalError

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700  # for their owner alone
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def private_directory(directory: Path) -> Path:
    """Make a directory that only its owner can enter; one that is there already is closed to others."""
    directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
    if directory.stat().st_mode & 0o077:
        directory.chmod(PRIVATE_DIRECTORY)
    return directory


def private_file(path: Path) -> Path:
    """Make an empty file that only its owner can read; one that is there already keeps its contents.

    It is not even opened: when a process closes a file, it loses all its locks on it, those of a ledger in use, too.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    if path.stat().st_mode & 0o077:
        path.chmod(PRIVATE_FILE)
    return path


def file_name(name: str) -> str:
    """Return a name that can be a file's and leads nowhere else; raise `FormatError` for any other."""
    if not _NAME.fullmatch(name):
        raise FormatError(f"{name[:100]!r} cannot name a file: use letters, digits, '_', '-' and '.', at most 100")
    return name


def write(path: Path, data: bytes, *, durable: bool = True, private: bool = False) -> None:
    """Write a file, and unless it need not be durable wait until it is on the disk."""
    if private:
        private_file(path)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as file:  # space that it has is kept
        file.write(data)
        file.truncate()
        if durable:
            file.flush()
            os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk: a rename is durable only then."""
    _sync(directory)


def sync_files(directory: Path) -> None:
    """Wait until a directory's files and their names are on the disk."""
    for path in (*directory.iterdir(), directory):
        _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, data: bytes, *, durable: bool = True, over: Path | None = None) -> None:
    """Write a whole file or nothing: a crash leaves the old contents, a full disk raises `JournalError`.

    Only its owner can read it. `over` is a file that nobody needs any more: its space is written anew, which takes the
    disk half as long as to find new space and to free the old.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # what a crash left may be open to others
        if over is not None:
            over.replace(temporary)
        write(temporary, data, durable=durable, private=True)
        temporary.replace(path)
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise JournalError(
            f"could not write {path} ({error.strerror}): free some space and run `tertulia resume`; "
            "everything committed before is intact"
        ) from error


def with_checksum(data: bytes) -> bytes:
    """Data behind its digest, so that a truncated or damaged file is noticed."""
    return hashlib.sha256(data).digest() + data


def read_checked(path: Path) -> bytes:
    """Read what was written `with_checksum`; raise `FormatError` if it is something else."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror}): restore it from a backup") from error
    if hashlib.sha256(raw[32:]).digest() != raw[:32]:
        raise FormatError(f"{path} is truncated or damaged ({len(raw)} bytes): restore it from a backup")
    return raw[32:]
