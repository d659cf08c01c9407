"""The chain of a ledger's entries: each hash covers its entry and the hash before it.

With the party's noise key the chain is an HMAC, so nobody without the key can rebuild it. Its first entry, number 0, is
a commitment to the key: a ledger belongs to one key, and a key to one ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.errors import FormatError
from tertulia.privacy.noise import NoiseKey

FORMAT = 3
KEY, MARK, DOCUMENTS, WITHDRAWN = "key:", "mark:", "documents:", "withdrawn:"  # ids of entries that are no releases
LOST, APPROVED = "lost:", "approved:"  # further ones
GENESIS = "0" * 64
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, hash TEXT, "
    + ", ".join(f"{name} TEXT DEFAULT ''" for name in ("time", "recipient", "plan", "policy"))
    + ")"
)
_SELECT = "SELECT id, body, time, recipient, plan, policy, seq, hash FROM entries ORDER BY seq"


class Entry(NamedTuple):
    """The contents of an entry, which its hash covers."""

    id: str
    body: str
    time: str = ""  # when it was charged, UTC
    recipient: str = ""  # who gets it
    plan: str = ""  # the agreed plan of the run, by its hash
    policy: str = ""  # the party's rules at that time, by their hash


class Row(NamedTuple):
    """An entry with its number and hash."""

    entry: Entry
    seq: int
    hash: str


def link(key: NoiseKey | None, previous: str, entry: Entry) -> str:
    """Hash an entry; without a key (a ledger in memory, say) the hash only shows accidents."""
    text = json.dumps([previous, *entry]).encode()
    if key is None:
        return hashlib.blake2b(text, digest_size=32).hexdigest()
    return hmac.new(key.derive(b"tertulia-ledger"), text, "sha256").hexdigest()


def commitment(key: NoiseKey) -> Entry:
    """Return the first entry of a ledger: it names the key, and reveals nothing about it."""
    return Entry(KEY, json.dumps(key.commitment))


def check_format(path: Path, version: int) -> None:
    """Raise `FormatError` if a ledger has another format than this one; 0: it has not been begun."""
    if version > FORMAT:
        raise FormatError(f"{path} has format {version}, this Tertulia reads up to {FORMAT}: upgrade it")
    if 0 < version < FORMAT:
        raise FormatError(f"{path} was made by an earlier, unreleased version: it cannot be opened")


def create(db: sqlite3.Connection, key: NoiseKey | None) -> None:
    """Lay out an empty ledger and bind it to its key."""
    db.execute(_SCHEMA)
    if key is not None:
        insert(db, key, GENESIS, commitment(key), seq=0)
    db.execute(f"PRAGMA user_version={FORMAT}")


def insert(db: sqlite3.Connection, key: NoiseKey | None, previous: str, entry: Entry, seq: int | None = None) -> None:
    """Add an entry at the end."""
    db.execute(
        "INSERT INTO entries (seq, id, body, time, recipient, plan, policy, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, *entry, link(key, previous, entry)),
    )


def rows(db: sqlite3.Connection) -> list[Row]:
    """Return all entries in order, the commitment included."""
    found = texts(db.execute(_SELECT).fetchall(), but=6)
    return [Row(Entry(*row[:6]), row[6], row[7]) for row in found]


def texts(rows: list[Any], first: int = 0, but: int | None = None) -> list[Any]:
    """Return the rows if they hold texts from column `first` on, `but` one: a damaged file may give anything."""
    for row in rows:
        if not all(isinstance(value, str) for n, value in enumerate(row) if n >= first and n != but):
            raise sqlite3.DatabaseError("a row is no text")
    return rows


def as_line(row: Row) -> str:
    """Write an entry as a line of JSON."""
    facts = row.entry._asdict()
    body = json.loads(facts.pop("body"))
    return json.dumps({"seq": row.seq, **facts, "hash": row.hash, "entry": body}, ensure_ascii=False) + "\n"


def key_of(db: sqlite3.Connection) -> str | None:
    """Return the commitment of the key that a ledger belongs to; None: it was written without one."""
    found = db.execute("SELECT body FROM entries WHERE seq = 0 AND id = ?", (KEY,)).fetchone()
    return None if found is None else str(json.loads(found[0]))


def check(path: Path, entries: Iterable[Row], key: NoiseKey | None) -> set[str]:
    """Raise `FormatError` if a hash does not fit; else return all hashes."""
    seen, previous = {GENESIS}, GENESIS
    for entry, _, hash_ in entries:
        if not hmac.compare_digest(hash_, link(key, previous, entry)):
            raise FormatError(f"{path}: entry '{entry.id}' was tampered with; restore the ledger from a backup")
        seen.add(hash_)
        previous = hash_
    return seen
