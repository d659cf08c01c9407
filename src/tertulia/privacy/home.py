"""A party's home: its ledger and its noise key, which belong to each other and outlast runs where a budget does.

Each names the other: the ledger's first entry is a commitment to the key, and the key's file says that there is such a
ledger. Where one half is missing, nothing is released. A new half would begin the budget anew, or draw fresh noise for
what is taken for reported: both in silence.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from tertulia._disk import private_directory, sync_directory
from tertulia._locks import taking_turns
from tertulia.errors import FormatError
from tertulia.privacy import chain
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.noise import NoiseKey, bind, create_key, is_bound
from tertulia.privacy.snapshots import check_alone

LEDGER, KEY = "ledger.sqlite", "noise.key"
_RESTORE = (
    "To restore: end all runs, put {missing} back from the backup of this directory that is as new as {there}, and run "
    "`tertulia ledger verify {home}`. If no backup exists: move {there} away, to be kept; begin a new home in an empty "
    "directory; and take off its budget what was spent, which `tertulia ledger show` says of a ledger without its key"
)


class Home(NamedTuple):
    """What a home holds."""

    ledger: Ledger
    key: NoiseKey


def open_home(directory: Path, *, fixed_key: str | None = None, durable: bool = True) -> Home:
    """Open ledger and key together; the first time, make both. `fixed_key` (hex) is for tests and marks the ledger."""
    if fixed_key is not None:
        return _open_fixed(directory, fixed_key, durable)
    private_directory(directory)
    with taking_turns(directory):  # with others that make or open the two files
        return _open(directory, durable)


@contextmanager
def alone_at(directory: Path) -> Iterator[None]:
    """Be the only one who opens a home, while nobody has it open; else raise `DirectoryInUse`."""
    private_directory(directory)
    with taking_turns(directory):
        check_alone(directory / LEDGER)
        yield


def carry_over(directory: Path, before: Callable[[], None], *, fixed_key: str | None = None) -> Home:
    """Open a home that may be of an earlier format, as `open_home` does, once `before` has looked at it undisturbed."""
    with alone_at(directory):
        before()
        return _open(directory, True) if fixed_key is None else _open_fixed(directory, fixed_key, True)


def _open_fixed(directory: Path, fixed_key: str, durable: bool) -> Home:
    key = NoiseKey.fixed(bytes.fromhex(fixed_key))
    ledger = Ledger(directory / LEDGER, key, durable=durable)
    ledger.mark_non_private("the noise key is fixed")
    return Home(ledger, key)


def _open(directory: Path, durable: bool) -> Home:
    path, key_path = directory / LEDGER, directory / KEY
    found, draft = _look_at(path), directory / f"{KEY}.new"
    if key_path.exists():
        if found is None:
            raise _missing(directory, LEDGER, KEY)
        key = NoiseKey.load(key_path)
        if is_bound(key_path) and found.key is None:  # somebody put a ledger there that names no key
            raise FormatError(f"{path} is not the ledger of {key_path}. {_restore(directory, LEDGER, KEY)}")
    else:
        if found is not None and found.needs_key and not _fits(draft, found):
            raise _missing(directory, KEY, LEDGER)
        if not draft.exists():
            create_key(draft)
        key = NoiseKey.load(draft)
    ledger = Ledger(path, key, durable=durable)  # its first entry is written before the key gets its name
    if not key_path.exists():
        draft.rename(key_path)
        sync_directory(directory)
    bind(key_path)
    return Home(ledger, key)


class _Found(NamedTuple):
    """What a ledger says before it is opened."""

    key: str | None  # the commitment, if it has one
    needs_key: bool


def _look_at(path: Path) -> _Found | None:
    """A ledger that has been begun, or None."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=60)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                return None
            owner = chain.key_of(db)
            # Before format 3 a key was made when it was needed: for anything but what is clear, public or derived.
            noisy = (
                "SELECT 1 FROM entries WHERE id NOT LIKE 'mark:%' AND body NOT LIKE '%\"event\":null%' AND body NOT "
            )
            noisy += "LIKE '%NonPrivateDpEvent%' AND body NOT LIKE '%NoOpDpEvent%' LIMIT 1"
            return _Found(owner, owner is not None or db.execute(noisy).fetchone() is not None)
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error


def _fits(draft: Path, found: _Found) -> bool:
    """Whether a key that was made, but not named before a crash, is this ledger's."""
    return draft.exists() and NoiseKey.load(draft).commitment == found.key


def _missing(directory: Path, missing: str, there: str) -> FormatError:
    return FormatError(f"{directory} has {there}, but {missing} is missing. {_restore(directory, missing, there)}")


def _restore(directory: Path, missing: str, there: str) -> str:
    return _RESTORE.format(missing=missing, there=there, home=directory)
