"""Files that survive a crash or a full disk, private files and directories, and logs.

A log has one JSON object per line: the time, a level, a text, and further facts. A line never quotes a document: our
own errors do not, and of other errors only their place is logged.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tertulia.errors import FormatError, JournalError

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700  # only for their owner
_WINDOWS = os.name == "nt"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def private_directory(directory: Path) -> Path:
    """Make a directory that only its owner can enter; close an existing one to others."""
    directory.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
    if directory.stat().st_mode & 0o077:
        directory.chmod(PRIVATE_DIRECTORY)
    return directory


def private_file(path: Path) -> Path:
    """Make an empty file that only its owner can read; an existing one keeps its contents.

    An existing file is not opened: a process that closes a file loses all its locks on it, those of a ledger too.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    if path.stat().st_mode & 0o077:
        path.chmod(PRIVATE_FILE)
    return path


def file_name(name: str) -> str:
    """Return the name if it can name a file in any folder; raise `FormatError` otherwise."""
    if not _NAME.fullmatch(name):
        raise FormatError(f"{name[:100]!r} cannot name a file: use letters, digits, '_', '-' and '.', at most 100")
    return name


def write(path: Path, data: bytes, *, durable: bool = True, private: bool = False) -> None:
    """Write a file; with `durable`, wait until it is on the disk."""
    mode = PRIVATE_FILE if private else 0o666
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, mode), "wb") as file:  # keeps the space that the file has
        if private and os.fstat(file.fileno()).st_mode & 0o077:
            path.chmod(mode)
        file.write(data)
        file.truncate()
        if durable:
            file.flush()
            os.fsync(file.fileno())


def write_page(path: Path, data: bytes) -> None:
    """Write a page that other users may read; raise `OSError` if the path is a link, which is never followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    try:
        if path.is_symlink():  # Windows has no O_NOFOLLOW
            raise OSError(errno.ELOOP, "it is a link")
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise OSError(error.errno, "it is a link" if path.is_symlink() else error.strerror) from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on the disk: a rename is durable only then."""
    _sync(directory)


def sync_file(path: Path) -> None:
    """Wait until a file is on the disk."""
    _sync(path)


def sync_files(directory: Path) -> None:
    """Wait until a directory's files and their names are on the disk."""
    for path in (*directory.iterdir(), directory):
        _sync(path)


def _sync(path: Path) -> None:
    if _WINDOWS and path.is_dir():
        return  # a folder cannot be opened, and NTFS journals names itself
    descriptor = os.open(path, os.O_RDWR if _WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def atomic_write(path: Path, data: bytes, *, durable: bool = True, over: Path | None = None) -> None:
    """Write a whole file or nothing: a crash leaves the old contents, a full disk raises `JournalError`.

    Only its owner can read it. `over` is a file that nobody needs any more. Its space is reused, which takes the disk
    half as long as to allocate new space and to free the old.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # a leftover of a crash may be readable by others
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
    """Put the digest in front of data, so that a truncated or damaged file is noticed."""
    return hashlib.sha256(data).digest() + data


def read_checked(path: Path) -> bytes:
    """Read data written `with_checksum`; raise `FormatError` if it is damaged."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror}): restore it from a backup") from error
    if hashlib.sha256(raw[32:]).digest() != raw[:32]:
        raise FormatError(f"{path} is truncated or damaged ({len(raw)} bytes): restore it from a backup")
    return raw[32:]


Level = Literal["debug", "info", "warning", "error"]


def write_line(log: Path, level: Level, text: str, **facts: Any) -> None:
    """Append a line to a private log; ignore a log that cannot be written."""
    entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, **facts, "text": text}
    try:
        with private_file(log).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(entry, ensure_ascii=False, default=str) + "\n")
    except OSError:
        logging.getLogger("tertulia").debug("%s cannot be written", log.name)


def read_lines(log: Path) -> list[dict[str, Any]]:
    """Read the entries of a log; a line of plain text, from an earlier version, becomes an entry with that text."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [_entry(line) for line in lines if line.strip()]


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    return entry if isinstance(entry, dict) and "text" in entry else {"level": "info", "text": line}
