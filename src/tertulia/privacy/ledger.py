"""A party's ledger: every release, charged on disk before it leaves.

The file is SQLite, and a charge is synced to disk before `record` returns: after a crash a party may have charged for
something that never left, but never the other way round. (Methods with thousands of steps in clear sync their rows with
their commits: even `kill -9` loses none, and a power failure only rows of steps that are run and recorded again.)
Each entry's hash covers the one before it, so whoever kept a digest (every model does) can see later whether history
was rewritten.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tertulia.errors import FormatError, JournalError, PolicyRefusal, Unreleased
from tertulia.privacy import accounting
from tertulia.privacy.accounting import Guarantee
from tertulia.privacy.adjacency import Bounds, common_level
from tertulia.privacy.mechanisms import Adjacency, Claim, Unit
from tertulia.privacy.releases import Release

if TYPE_CHECKING:
    from tertulia.privacy.policy import Policy

__all__ = ["ClaimRow", "Guarantee", "Ledger", "Release"]

_FORMAT = 2
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, body TEXT, hash TEXT)"
_SENT = "CREATE TABLE IF NOT EXISTS sent (id TEXT PRIMARY KEY, day TEXT, nbytes INTEGER)"  # beside the chain of entries
_MARK = "mark:"
_GENESIS = "0" * 64


@dataclass(frozen=True)
class ClaimRow:
    """Claimed beside real, for all releases of one thing by one mechanism.

    What is derived has the unit, adjacency and cost of the releases that it is computed from, its `sources`. They were
    charged once: costs of rows must not be added up.
    """

    what: str
    mechanism: str
    unit: Unit
    adjacency: Adjacency
    releases: int
    nbytes: int
    claimed: Claim | None
    real: Guarantee
    vacuous: str | None  # why the real value means nothing, if so
    finding: str | None = None  # what a mechanism found out about itself, with the data at hand, when it was last used
    sources: tuple[str, ...] = ()  # what a derived thing is computed from


class Ledger:
    """The releases of one party.

    >>> ledger = Ledger(path)  # doctest: +SKIP
    >>> ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, delta=1e-6).epsilon  # doctest: +SKIP
    inf
    """

    def __init__(self, path: Path | str, *, durable: bool = True) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.durable = durable
        self._lock = threading.RLock()
        self._read: dict[str, Release] = {}  # the releases up to entry number `_seen`, by id
        self._seen = 0
        with self._errors():
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            self.close = weakref.finalize(self, self._db.close)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._synchronise()
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > _FORMAT:
                raise FormatError(f"{self.path} has format {version}, this Tertulia reads up to {_FORMAT}: upgrade it")
            if version < _FORMAT:
                with self._transaction():
                    self._db.execute(_SCHEMA)
                    self._db.execute(f"PRAGMA user_version={_FORMAT}")
            self._db.execute(_SENT)

    def record(self, release: Release, policy: Policy | None = None, *, sync: bool = True) -> bool:
        """Charge a release, durably; with a policy, check it first. False if this very release was charged before."""
        with self._transaction(sync=sync):
            known = self._body_or_none(release.id)
            if known is not None:
                if Release.from_json(known) != Release.from_json(release.to_json()):
                    raise PolicyRefusal(
                        "one release, one content", f"'{release.id}' was recorded before with other contents"
                    )
                return False
            self._check_parents(release)
            if policy is not None:
                policy.check(release, self)
            self._append(release.id, release.to_json())
            if release.verb != "reports":  # these stay at the party
                self._db.execute("INSERT INTO sent VALUES (?, ?, ?)", (release.id, _today(), release.nbytes))
            return True

    def bytes_sent(self, but: Release, *, in_round: bool = False) -> int:
        """How many bytes have left in a release's run, or round, itself left out: a repeat is the same bytes."""
        run = [r for r in self.releases() if r.run == but.run and r.id != but.id]
        return sum(r.nbytes for r in run if r.round == but.round or not in_round)

    def bytes_sent_today(self, but: Release) -> int:
        """The same since midnight, UTC, in all runs."""
        asked = "SELECT TOTAL(nbytes) FROM sent WHERE day = ? AND id <> ?"
        with self._errors():
            row = self._db.execute(asked, (_today(), but.id)).fetchone()
        return int(row[0])

    def check(self, release: Release, policy: Policy) -> None:
        """Raise `PolicyRefusal` if the party's policy forbids this release; nothing is recorded."""
        self._check_parents(release)
        policy.check(release, self)

    def mark_non_private(self, reason: str) -> None:
        """Record that nothing here is protected (the noise key is known, say): epsilon is infinite from now on."""
        with self._transaction():
            if self._body_or_none(_MARK + reason) is None:
                self._append(_MARK + reason, json.dumps(reason))

    def sync(self) -> None:
        """Wait until every row is on disk."""
        if self.durable:
            with self._errors():
                self._db.execute("PRAGMA wal_checkpoint(FULL)")

    def releases(self) -> list[Release]:
        """All releases, in order. Rows never change, so each is read once."""
        with self._errors():
            rows = self._db.execute("SELECT seq, id, body FROM entries WHERE seq > ? ORDER BY seq", (self._seen,))
            for seq, id_, body in rows.fetchall():
                if not id_.startswith(_MARK):
                    self._read[id_] = Release.from_json(body)
                self._seen = seq
            return list(self._read.values())

    def marks(self) -> list[str]:
        """Why the ledger is non-private, if it is."""
        return [str(json.loads(body)) for id_, body, _ in self._entries() if id_.startswith(_MARK)]

    def cost(
        self,
        unit: Unit,
        adjacency: Adjacency,
        delta: float,
        *,
        bounds: Bounds | None = None,
        with_release: Release | None = None,
    ) -> Guarantee:
        """The real guarantee of everything that has left, `with_release` added."""
        releases = self.releases()
        if with_release is not None and with_release.id not in self._read:
            releases.append(with_release)
        return self._guarantee(releases, unit, adjacency, delta, bounds or Bounds())

    def table(self, delta: float = 1e-6, *, population: int | None = None, words: int | None = None) -> list[ClaimRow]:
        """Claimed beside real: a row for each thing, unit, mechanism and claim (`population` units, `words` in all)."""
        groups: dict[tuple[str, str, Unit, Adjacency, Claim | None], list[Release]] = {}
        for r in self.releases():
            groups.setdefault((r.what, r.name, r.unit, r.adjacency, r.claimed), []).append(r)
        rows = []
        for (what, name, _, _, claimed), group in groups.items():
            charged = self._sources(group)
            unit, adjacency = common_level((r.unit, r.adjacency) for r in charging_or_all(charged) or group)
            real = self._guarantee(charged, unit, adjacency, delta, Bounds())
            vacuous = accounting.vacuity_or_none(real, adjacency, population, words)
            nbytes = sum(r.nbytes for r in group)
            finding = group[-1].params.get("finding")
            sources = tuple(sorted({r.what for r in charged})) if any(r.event is None for r in group) else ()
            rows.append(
                ClaimRow(what, name, unit, adjacency, len(group), nbytes, claimed, real, vacuous, finding, sources)
            )
        return rows

    def _sources(self, releases: Iterable[Release]) -> list[Release]:
        """The releases themselves; in place of derived ones, all that these are computed from."""
        found: dict[str, Release] = {}
        waiting = list(releases)[::-1]
        while waiting:
            release = waiting.pop()
            if release.event is not None:
                found[release.id] = release
            else:
                waiting += [self._read[parent] for parent in release.parents]
        return list(found.values())

    def digest(self) -> str:
        """The hash of the last entry, which covers all before it."""
        with self._errors():
            row = self._db.execute("SELECT hash FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        return str(row[0]) if row else _GENESIS

    def verify(self, digest: str | None = None) -> None:
        """Raise `FormatError` if an entry was changed, or if the history does not contain a `digest` kept earlier."""
        seen = {_GENESIS}
        previous = _GENESIS
        for id_, body, hash_ in self._entries():
            if hash_ != _chain(previous, id_, body):
                raise FormatError(f"{self.path}: entry '{id_}' was tampered with; restore the ledger from a backup")
            seen.add(hash_)
            previous = hash_
        if digest is not None and digest not in seen:
            raise FormatError(f"{self.path} has lost the entries up to digest {digest}; restore it from a backup")

    def export(self, path: Path | str) -> None:
        """Write the ledger as JSON lines, each with its hash."""
        lines = [
            json.dumps({"id": i, "hash": h, "entry": json.loads(b)}, ensure_ascii=False) for i, b, h in self._entries()
        ]
        Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def _guarantee(
        self, releases: Sequence[Release], unit: Unit, adjacency: Adjacency, delta: float, bounds: Bounds
    ) -> Guarantee:
        marks = self.marks()
        if marks and any(r.charges for r in releases):
            return accounting.no_guarantee(delta, marks)
        return accounting.cost(releases, unit, adjacency, delta, bounds)

    def _check_parents(self, release: Release) -> None:
        if release.event is not None:
            return
        unknown = [parent for parent in release.parents if not self._is_release(parent)]
        if unknown or not release.parents:
            raise Unreleased(
                f"'{release.what}' carries no charge, but is computed from {unknown or 'raw data'}, which this party "
                "never released: release it by a mechanism that charges"
            )

    def _is_release(self, id_: str) -> bool:
        with self._errors():
            found = self._db.execute("SELECT 1 FROM entries WHERE id = ?", (id_,)).fetchone()
        return found is not None and not id_.startswith(_MARK)

    def _body_or_none(self, id_: str) -> str | None:
        row = self._db.execute("SELECT body FROM entries WHERE id = ?", (id_,)).fetchone()
        return None if row is None else str(row[0])

    def _append(self, id_: str, body: str) -> None:
        hash_ = _chain(self.digest(), id_, body)
        self._db.execute("INSERT INTO entries (id, body, hash) VALUES (?, ?, ?)", (id_, body, hash_))

    def _entries(self) -> list[tuple[str, str, str]]:
        with self._errors():
            return self._db.execute("SELECT id, body, hash FROM entries ORDER BY seq").fetchall()

    def _synchronise(self, *, now: bool = True) -> None:
        level = ("FULL" if now else "NORMAL") if self.durable else "OFF"  # FULL: every commit is synced
        self._db.execute(f"PRAGMA synchronous={level}")

    @contextmanager
    def _transaction(self, *, sync: bool = True) -> Iterator[None]:
        """All or nothing, one writer at a time among threads and processes; synced to disk at its end."""
        with self._errors():
            self._synchronise(now=sync)
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # a full disk has rolled it back already
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Hold the connection's lock, and put SQLite's errors into our words."""
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                raise JournalError(f"the ledger {self.path} cannot be used ({error}); nothing was released") from error
            except sqlite3.DatabaseError as error:
                raise FormatError(f"{self.path} is not a ledger ({error}); restore it from a backup") from error


def charging_or_all(sources: list[Release]) -> list[Release]:
    """The releases whose unit and adjacency a cost is stated in: those that charge, if there are such."""
    return [release for release in sources if release.charges] or sources


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _chain(previous: str, id_: str, body: str) -> str:
    text = json.dumps([previous, id_, body])
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()
