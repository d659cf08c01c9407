"""Ledgers as they stand: looked at and copied without being touched, and while nobody else has them open.

SQLite writes files beside the one that it opens, and keeps what was committed last in one of them (`-wal`). So a look
is a look at a copy, and a copy has in one file whatever was committed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tertulia._disk import private_file
from tertulia.errors import DirectoryInUse, FormatError
from tertulia.privacy import chain

_LOG = "-wal"


@contextmanager
def snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a ledger, for as long as it is looked at.

    Not where this process has the ledger open: whoever closes a file gives back the locks that SQLite has on it.
    """
    with TemporaryDirectory() as place, closing(sqlite3.connect(copy_whole(path, Path(place) / path.name))) as db:
        try:
            yield db
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error


def copy_whole(path: Path, target: Path) -> Path:
    """Copy a ledger, byte for byte; what its log holds is brought into the copy."""
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
    """The format of a ledger; 0: it has not been begun."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def contents(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """What a ledger says, whatever its format: all entries but the commitment to a key."""
    if version_of(db) == 0:
        return []
    return [(row.entry.id, row.entry.body) for row in chain.rows(db) if row.entry.id != chain.KEY]


def check_alone(path: Path) -> None:
    """Raise `DirectoryInUse` if anybody has a ledger open; its bytes stay as they are."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            raise DirectoryInUse(f"{path} is in use: end all runs of this party first") from None
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error
