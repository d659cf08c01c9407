"""Writing so that a crash or a full disk leaves what was there before."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tertulia.errors import FormatError, JournalError


def write(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file, and unless it need not be durable wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
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


def atomic_write(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a whole file or nothing: a crash leaves the old contents, a full disk raises `JournalError`."""
    temporary = path.with_name(path.name + ".part")
    try:
        write(temporary, data, durable=durable)
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
    raw = path.read_bytes()
    if hashlib.sha256(raw[32:]).digest() != raw[:32]:
        raise FormatError(f"{path} is truncated or damaged ({len(raw)} bytes): restore it from a backup")
    return raw[32:]
