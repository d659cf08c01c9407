"""A party's home: its ledger and its noise key, which belong to each other and outlast runs where a budget does.

Each names the other: the ledger's first entry is a commitment to the key, and the key's file says that there is such a
ledger. Where one half is missing, nothing is released. A new ledger would silently restart the budget; a new key would
silently draw fresh noise for documents that count as reported.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tertulia._disk import private_directory, sync_directory
from tertulia._locks import brief_lock
from tertulia.errors import FormatError
from tertulia.privacy import chain
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.noise import NoiseKey, create_key

LEDGER, KEY = "ledger.sqlite", "noise.key"
_RESTORE = (
    "To restore: end all runs, put {missing} back from the backup of this directory that is as new as {there}, and run "
    "`tertulia ledger verify {home}`. If no backup exists: move {there} away, to be kept; begin a new home in an empty "
    "directory; and take off its budget what was spent, which `tertulia ledger show` says of a ledger without its key"
)


_OTHER = (
    "{directory} is not the home that this run began with: its key or its ledger is another one. The run would draw "
    "fresh noise, and spend again what its first home has charged. Restore both files of that home from a backup; if "
    "there is none, end this run, and take off the new home's budget what this run may have spent"
)


class Home(NamedTuple):
    """A ledger and its key."""

    ledger: Ledger
    key: NoiseKey

    @property
    def identity(self) -> str:
        """A public name for this home, which reveals nothing about its key."""
        return identity_of(self.key)


def identity_of(key: NoiseKey) -> str:
    """Return a public name for the home of a key: a hash of the commitment to it."""
    return hashlib.blake2b(key.commitment.encode(), person=b"tertulia-home", digest_size=16).hexdigest()


def open_home(
    directory: Path, *, fixed_key: str | None = None, durable: bool = True, identity: str | None = None
) -> Home:
    """Open ledger and key together; the first time, make both. `fixed_key` (hex) is for tests and marks the ledger.

    With an `identity` only the home of that name is opened, and none is made.
    """
    if fixed_key is not None:
        return _open_fixed(directory, fixed_key, durable)
    if identity is not None and not ((directory / KEY).exists() or (directory / LEDGER).exists()):
        raise FormatError(_OTHER.format(directory=directory))
    private_directory(directory)
    with brief_lock(directory):  # with others that make or open the two files
        home = _open(directory, durable)
    if identity not in (None, home.identity):
        raise FormatError(_OTHER.format(directory=directory))
    return home


def _open_fixed(directory: Path, fixed_key: str, durable: bool) -> Home:
    key = NoiseKey.fixed(bytes.fromhex(fixed_key))
    ledger = Ledger(directory / LEDGER, key, durable=durable)
    ledger.mark_non_private("the noise key is fixed")
    return Home(ledger, key)


def _open(directory: Path, durable: bool) -> Home:
    path, key_path = directory / LEDGER, directory / KEY
    found, draft = begun_or_none(path), directory / f"{KEY}.new"
    if key_path.exists():
        if found is None:
            raise missing_half(directory, LEDGER, KEY)
        key = NoiseKey.load(key_path)
        if found.key is None:  # somebody put a ledger there that names no key
            raise FormatError(f"{path} is not the ledger of {key_path}. {_restore(directory, LEDGER, KEY)}")
    else:
        if found is not None and found.key is not None and not _fits(draft, found):
            raise missing_half(directory, KEY, LEDGER)
        if not draft.exists():
            create_key(draft)
        key = NoiseKey.load(draft)
    ledger = Ledger(path, key, durable=durable)  # its first entry is written before the key gets its name
    if not key_path.exists():
        draft.rename(key_path)
        sync_directory(directory)
    return Home(ledger, key)


class Begun(NamedTuple):
    """A ledger that has been begun, as it is before it is opened."""

    key: str | None  # the commitment, if it has one


def begun_or_none(path: Path) -> Begun | None:
    """Read a ledger's commitment to its key; None: the ledger has not been begun."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=60)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            chain.check_format(path, version)
            return Begun(chain.key_of(db)) if version else None
    except sqlite3.DatabaseError as error:
        raise FormatError(f"{path} is not a ledger ({error}); restore it from a backup") from error


def _fits(draft: Path, found: Begun) -> bool:
    """Return whether a key that was made, but not renamed before a crash, is this ledger's."""
    return draft.exists() and NoiseKey.load(draft).commitment == found.key


def missing_half(directory: Path, missing: str, there: str) -> FormatError:
    """Return the error of a home that lacks its ledger or its key; it says how to restore both."""
    return FormatError(f"{directory} has {there}, but {missing} is missing. {_restore(directory, missing, there)}")


def _restore(directory: Path, missing: str, there: str) -> str:
    return _RESTORE.format(missing=missing, there=there, home=directory)
