"""The chain of a ledger's entries: each hash covers its entry and the hash before it.

With the party's noise key the chain is an HMAC, so nobody without the key can rebuild it. Its first entry, number 0, is
a commitment to the key: a ledger belongs to one key, and a key to one ledger. Ledgers that were written before had a
plain hash and no commitment; they are copied, checked and chained anew, and keep the old hashes beside the new ones, so
that digests in old models are still found.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tertulia.errors import FormatError
from tertulia.privacy.noise import NoiseKey

FORMAT = 3
KEY, MARK, DOCUMENTS = "key:", "mark:", "documents:"  # ids of entries that are no releases begin with these
GENESIS = "0" * 64
_COLUMNS = ("time", "recipient", "plan", "policy", "former")  # those that format 3 brought
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, hash TEXT, "
    + ", ".join(f"{name} TEXT DEFAULT ''" for name in _COLUMNS)
    + ")"
)
_SELECT = "SELECT id, body, {}, seq, hash FROM entries ORDER BY seq"


class Entry(NamedTuple):
    """What a hash covers."""

    id: str
    body: str
    time: str = ""  # when it was charged, UTC
    recipient: str = ""  # who gets it
    plan: str = ""  # the agreed plan of the run, by its hash
    policy: str = ""  # the party's rules at that time, by their hash


class Row(NamedTuple):
    """An entry where it stands."""

    entry: Entry
    seq: int
    hash: str


def link(key: NoiseKey | None, previous: str, entry: Entry) -> str:
    """The hash of an entry; without a key (a ledger in memory, say) it only shows accidents."""
    text = json.dumps([previous, *entry]).encode()
    if key is None:
        return hashlib.blake2b(text, digest_size=32).hexdigest()
    return hmac.new(key.derive(b"tertulia-ledger"), text, "sha256").hexdigest()


def commitment(key: NoiseKey) -> Entry:
    """The first entry of a ledger: it names the key, and tells nothing about it."""
    return Entry(KEY, json.dumps(key.commitment))


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
    """All entries in order, the commitment included."""
    there = {row[1] for row in db.execute("PRAGMA table_info(entries)")}
    columns = ", ".join(name if name in there else "''" for name in _COLUMNS[:4])
    found = texts(db.execute(_SELECT.format(columns)).fetchall(), but=6)
    return [Row(Entry(*row[:6]), row[6], row[7]) for row in found]


def texts(rows: list[Any], first: int = 0, but: int | None = None) -> list[Any]:
    """The same rows, if they hold texts from column `first` on, `but` one: a damaged file may give anything."""
    for row in rows:
        if not all(isinstance(value, str) for n, value in enumerate(row) if n >= first and n != but):
            raise sqlite3.DatabaseError("a row is no text")
    return rows


def as_line(row: Row) -> str:
    """An entry as a line of JSON."""
    facts = row.entry._asdict()
    body = json.loads(facts.pop("body"))
    return json.dumps({"seq": row.seq, **facts, "hash": row.hash, "entry": body}, ensure_ascii=False) + "\n"


def key_of(db: sqlite3.Connection) -> str | None:
    """The commitment of the key that a ledger belongs to; None: it was written without one."""
    found = db.execute("SELECT body FROM entries WHERE seq = 0 AND id = ?", (KEY,)).fetchone()
    return None if found is None else str(json.loads(found[0]))


def check(path: Path, entries: Iterable[Row], key: NoiseKey | None) -> set[str]:
    """Raise `FormatError` if a hash does not fit; else give all hashes."""
    seen, previous = {GENESIS}, GENESIS
    for entry, _, hash_ in entries:
        if not hmac.compare_digest(hash_, link(key, previous, entry)):
            raise FormatError(f"{path}: entry '{entry.id}' was tampered with; restore the ledger from a backup")
        seen.add(hash_)
        previous = hash_
    return seen


def upgrade(db: sqlite3.Connection, path: Path, version: int, key: NoiseKey | None) -> None:
    """Bring a ledger of an earlier format to this one, within a transaction; a copy of the old one stays beside it."""
    columns = {row[1] for row in db.execute("PRAGMA table_info(entries)")}
    for name in _COLUMNS:
        if name not in columns:
            db.execute(f"ALTER TABLE entries ADD COLUMN {name} TEXT DEFAULT ''")
    previous = GENESIS
    old = rows(db)
    for entry, _, hash_ in old:
        text = json.dumps([previous, entry.id, entry.body])
        if hash_ != hashlib.blake2b(text.encode(), digest_size=32).hexdigest():
            raise FormatError(f"{path}: entry '{entry.id}' was tampered with; restore the ledger from a backup")
        previous = hash_
    copy = path.with_name(f"{path.name}.format-{version}")
    if old and not copy.exists():
        part = copy.with_name(copy.name + ".part")
        part.unlink(missing_ok=True)
        _copy_committed(path, part)
        shutil.move(part, copy)
    previous = GENESIS
    if key is not None:
        insert(db, key, previous, commitment(key), seq=0)
        previous = link(key, previous, commitment(key))
    for entry, seq, hash_ in old:
        previous = link(key, previous, entry)
        db.execute("UPDATE entries SET hash = ?, former = ? WHERE seq = ?", (previous, hash_, seq))
    db.execute(f"PRAGMA user_version={FORMAT}")


def _copy_committed(path: Path, target: Path) -> None:
    """What is committed in a database file, whatever is being written at the same time."""
    source, copy = sqlite3.connect(path), sqlite3.connect(target)
    try:
        source.backup(copy)
    finally:
        copy.close()
        source.close()
