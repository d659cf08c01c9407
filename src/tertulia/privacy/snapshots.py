"""Ledgers read without being touched: nothing is made, changed or locked.

SQLite writes files beside the one that it opens, and keeps what was committed last in one of them (`-wal`). So readers
get a copy, which holds in one file all that was committed. Anybody may write a directory that names a home: reading it
must not touch that home. `releases_after` reads a ledger in place while its party writes: read-only, and without its
key.
"""

from __future__ import annotations

import shutil
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import NamedTuple

from tertulia._disk import private_file
from tertulia.errors import FormatError
from tertulia.privacy import chain
from tertulia.privacy.charges import NO_RELEASES
from tertulia.privacy.home import KEY, LEDGER, begun_or_none, missing_half
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.releases import Release

_LOG = "-wal"
_ROWS = "SELECT seq, id, body, time FROM entries WHERE seq > ? ORDER BY seq"


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a ledger, for as long as the context lasts.

    Never use it where this process has the ledger open: closing a file releases the locks that SQLite has on it.
    """
    with TemporaryDirectory() as place, closing(sqlite3.connect(copy_whole(path, Path(place) / path.name))) as db:
        try:
            yield db
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error


def copy_whole(path: Path, target: Path) -> Path:
    """Copy a ledger byte for byte, and bring the contents of its log into the copy."""
    log, copied = path.with_name(path.name + _LOG), target.with_name(target.name + _LOG)
    shutil.copyfile(path, private_file(target))
    if log.exists():
        shutil.copyfile(log, private_file(copied))
        try:
            with closing(sqlite3.connect(target)) as db:  # closing writes the log into the file, and removes it
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error
    return target


def version_of(db: sqlite3.Connection) -> int:
    """Return the format of a ledger; 0: it has not been begun."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def contents(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the id and body of all entries but the commitment to a key."""
    if version_of(db) == 0:
        return []
    return [(row.entry.id, row.entry.body) for row in chain.rows(db) if row.entry.id != chain.KEY]


def read_ledger(directory: Path, *, fixed_key: str | None = None, with_key: bool = True) -> Ledger:
    """Return a copy of a home's ledger, to read; an empty one where a home was not begun.

    With its key the chain is checked, and a home that lacks its ledger or its key is an error, as in `open_home`.
    """
    path, key_path = directory / LEDGER, directory / KEY
    if not path.exists():
        if key_path.exists() and fixed_key is None:
            raise missing_half(directory, LEDGER, KEY)
        return Ledger(":memory:")
    place = Path(mkdtemp(prefix="tertulia-"))
    try:
        copy = _copy(path, place / LEDGER)
        ledger = Ledger(copy, _key_or_none(directory, copy, fixed_key) if with_key else None, durable=False)
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if isinstance(error, FormatError):  # name the original, not the copy
            raise FormatError(str(error).replace(str(place / LEDGER), str(path))) from error
        raise
    ledger.path = path
    weakref.finalize(ledger, shutil.rmtree, place, ignore_errors=True)
    return ledger


def _key_or_none(directory: Path, copy: Path, fixed_key: str | None) -> NoiseKey | None:
    if fixed_key is not None:
        return NoiseKey.fixed(bytes.fromhex(fixed_key))
    found = begun_or_none(copy)
    if (directory / KEY).exists():
        if found is not None and found.key is None:
            raise FormatError(
                f"{directory / LEDGER} is not the ledger of {directory / KEY}: restore both from a backup"
            )
        return NoiseKey.load(directory / KEY)
    if found is not None and found.key is not None:
        raise missing_half(directory, KEY, LEDGER)
    return None


def _copy(path: Path, target: Path) -> Path:
    """Copy a ledger with all that was committed, also while another process writes to it."""
    if not path.with_name(f"{path.name}-shm").exists():  # no process has it open
        return copy_whole(path, target)
    source = f"{path.resolve().as_uri()}?mode=ro"
    try:
        db, copy = sqlite3.connect(source, uri=True, timeout=60), sqlite3.connect(private_file(target))
        with closing(db), closing(copy):
            db.backup(copy)
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error
    return target


class Seen(NamedTuple):
    """A release, and when it was charged."""

    seq: int
    time: str  # UTC
    release: Release


def releases_after(path: Path, seq: int = 0) -> list[Seen]:
    """Return the releases after an entry's number; none if there is no ledger, or if it cannot be read just now."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            rows = db.execute(_ROWS, (seq,)).fetchall()
        return [
            Seen(number, time, Release.from_json(body))
            for number, id_, body, time in rows
            if not id_.startswith(NO_RELEASES)
        ]
    except (sqlite3.Error, FormatError):
        return []
