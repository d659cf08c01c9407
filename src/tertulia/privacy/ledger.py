"""A party's ledger: every release, charged on disk before it leaves.

The file is SQLite, and a charge is synced to disk before `record` returns: after a crash a party may have charged for
something that never left, but never the other way round. (Methods with thousands of steps in clear sync their rows with
their commits: even `kill -9` loses none, and a power failure only rows of steps that are run and recorded again.)
Each entry's hash covers the one before it, under the party's key (`chain`); it is checked whenever a ledger is opened.
Whoever kept a digest (every model does, and the server of a run) can see later whether the end was cut off.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tertulia._disk import PRIVATE_DIRECTORY, private_file
from tertulia.errors import FormatError, JournalError, PolicyRefusal, Unreleased
from tertulia.privacy import accounting, chain
from tertulia.privacy.accounting import Guarantee
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.chain import DOCUMENTS, GENESIS, KEY, MARK, Entry
from tertulia.privacy.claim_table import ClaimRow, Extent, charging_or_all, claim_table
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.releases import Release
from tertulia.privacy.reported import Fingerprints, Numbered, ReportedDocuments

if TYPE_CHECKING:
    from tertulia.privacy.policy import Policy

__all__ = ["ClaimRow", "Guarantee", "Ledger", "Release", "charging_or_all"]
_NO_RELEASES = (KEY, MARK, DOCUMENTS)
_NEW_ROWS = "SELECT seq, id, CASE WHEN id LIKE ? THEN '' ELSE body END FROM entries WHERE seq > ? ORDER BY seq"
_NO_KEY = "can only be read without its noise key: open it by its home"


class Ledger:
    """The releases of one party.

    >>> ledger = Ledger(path)  # doctest: +SKIP
    >>> ledger.cost(Unit.DOCUMENT, Adjacency.ADD_REMOVE, delta=1e-6).epsilon  # doctest: +SKIP
    inf
    """

    def __init__(self, path: Path | str, key: NoiseKey | None = None, *, durable: bool = True) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIRECTORY)
        if str(path) != ":memory:":
            with suppress(OSError):  # SQLite will say what is wrong
                private_file(self.path)
        self.durable = durable
        self.addressee = ("", "")  # whom the next releases are for, and the hash of the plan that was agreed on
        self._key = key
        self._lock = threading.RLock()
        self._read: dict[str, Release] = {}  # the releases up to entry number `_seen`, by id
        self._seen = 0
        self._reported: dict[str, ReportedDocuments] = {}  # by the id of the charge
        with self._errors():
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            self.close = weakref.finalize(self, self._db.close)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._synchronise()
            self._prepare()

    def _prepare(self) -> None:
        """Lay out a new file, or upgrade one; check the key and the chain."""
        self._readable_only = self._key is None and 0 < self._version() < chain.FORMAT
        if self._version() < chain.FORMAT and not self._readable_only:
            with self._transaction():
                version = self._version()  # another process may have been first
                if version == 0:
                    chain.create(self._db, self._key)
                elif version < chain.FORMAT:
                    chain.upgrade(self._db, self.path, version, self._key)
        owner = chain.key_of(self._db)
        if self._key is not None and owner != self._key.commitment:
            raise FormatError(
                f"{self.path} belongs to another noise key: restore the two files of one home from the same backup"
            )
        self._readable_only = self._readable_only or (self._key is None and owner is not None)
        if not self._readable_only:
            chain.check(self.path, chain.rows(self._db), self._key)

    def _version(self) -> int:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > chain.FORMAT:
            raise FormatError(f"{self.path} has format {version}, this Tertulia reads up to {chain.FORMAT}: upgrade it")
        return int(version)

    def record(self, release: Release, policy: Policy | None = None, *, sync: bool = True) -> bool:
        """Charge a release, durably; with a policy, check it first. False if this very release was charged before."""
        with self._transaction(sync=sync):
            return self._record(release, policy)

    def _record(self, release: Release, policy: Policy | None) -> bool:
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
        self._append(release.id, release.to_json(), policy)
        return True

    def record_reports(self, release: Release, documents: Fingerprints, policy: Policy | None = None) -> Numbered:
        """Charge for reports of these documents' tokens; see `reported` for what is new, and what it costs.

        The release stands for the first version of every document; for later ones there are releases of their own.
        """
        with self._transaction():
            known = self.reported(release.id)
            numbered, new = known.number(documents)
            for version in range(1, numbered.versions + 1):
                self._record(release.version(version), policy)
            if len(new):
                self._append(f"{DOCUMENTS}{release.id}#{known.batches}", new.to_json(release.id), policy)
        return numbered

    def reported(self, charge: str) -> ReportedDocuments:
        """The documents whose reports a charge covers."""
        known = self._reported.setdefault(charge, ReportedDocuments())
        first, last = f"{DOCUMENTS}{charge}#", f"{DOCUMENTS}{charge}$"  # '$' comes after '#'
        rows = "SELECT body FROM entries WHERE id > ? AND id < ? ORDER BY seq LIMIT -1 OFFSET ?"
        for (body,) in self._db.execute(rows, (first, last, known.batches)).fetchall():
            known.add_batch(body)
        return known

    def bytes_sent(self, but: Release, *, in_round: bool = False) -> int:
        """How many bytes have left in a release's run, or round, itself left out: a repeat is the same bytes."""
        run = [r for r in self.releases() if r.run == but.run and r.id != but.id]
        return sum(r.nbytes for r in run if r.round == but.round or not in_round)

    def bytes_sent_today(self, but: Release) -> int:
        """The same since midnight, UTC, in all runs."""
        known, today = {r.id: r for r in self.releases()}, _now()[:10]
        with self._errors():
            rows = self._db.execute("SELECT id FROM entries WHERE time >= ?", (today,)).fetchall()
        sent = [known[id_] for (id_,) in rows if id_ in known and id_ != but.id]
        return sum(release.nbytes for release in sent if release.verb != "reports")  # these stay at the party

    def check(self, release: Release, policy: Policy) -> None:
        """Raise `PolicyRefusal` if the party's policy forbids this release; nothing is recorded."""
        self._check_parents(release)
        policy.check(release, self)

    def mark_non_private(self, reason: str) -> None:
        """Record that nothing here is protected (the noise key is known, say): epsilon is infinite from now on."""
        with self._transaction():
            if self._body_or_none(MARK + reason) is None:
                self._append(MARK + reason, json.dumps(reason))

    def sync(self) -> None:
        """Wait until every row is on disk."""
        if self.durable:
            with self._errors():
                self._db.execute("PRAGMA wal_checkpoint(FULL)")

    def releases(self) -> list[Release]:
        """All releases, in order. Rows never change, so each is read once."""
        with self._errors():
            rows = self._db.execute(_NEW_ROWS, (DOCUMENTS + "%", self._seen))
            for seq, id_, body in chain.texts(rows.fetchall(), first=1):
                if not id_.startswith(_NO_RELEASES):
                    self._read[id_] = Release.from_json(body)
                self._seen = seq
            return list(self._read.values())

    def marks(self) -> list[str]:
        """Why the ledger is non-private, if it is."""
        with self._errors():
            rows = self._db.execute("SELECT body FROM entries WHERE id LIKE ? ORDER BY seq", (MARK + "%",))
            return [str(json.loads(body)) for (body,) in rows.fetchall()]

    def cost(
        self, unit: Unit, adjacency: Adjacency, delta: float, *, bounds: Bounds | None = None,
        with_release: Release | None = None,
    ) -> Guarantee:  # fmt: skip
        """The real guarantee of everything that has left, `with_release` added."""
        releases = self.releases()
        if with_release is not None and with_release.id not in self._read:
            releases.append(with_release)
        return self._guarantee(releases, unit, adjacency, delta, bounds or Bounds())

    def table(self, delta: float = 1e-6, *, population: int | None = None, words: int | None = None) -> list[ClaimRow]:
        """Claimed beside real: a row for each thing, unit, mechanism and claim (`population` units, `words` in all)."""
        self.releases()
        real = lambda charged, unit, how: self._guarantee(charged, unit, how, delta, Bounds())  # noqa: E731
        return claim_table(self._read, real, Extent(population, words))

    def digest(self, seq: int | None = None) -> str:
        """Number and hash of the last entry, which covers all before it; or of an earlier one ("" if it is not there).

        >>> Ledger(":memory:").digest()[:8]
        '0:000000'
        """
        with self._errors():
            last = "SELECT seq, hash FROM entries WHERE ? IS NULL OR seq = ? ORDER BY seq DESC LIMIT 1"
            found = self._db.execute(last, (seq, seq)).fetchone()
        if found is None:
            return f"0:{GENESIS}" if not seq else ""
        return f"{found[0]}:{found[1]}"

    def verify(self, digest: str | None = None) -> None:
        """Raise `FormatError` if an entry was changed, or if the history does not contain a `digest` kept earlier."""
        if self._readable_only:
            raise FormatError(f"{self.path} {_NO_KEY}")
        with self._errors():
            seen = chain.check(self.path, chain.rows(self._db), self._key)
            seen |= {hash_ for (hash_,) in self._db.execute("SELECT former FROM entries")}  # of an earlier format
        if digest is not None and digest.rpartition(":")[2] not in seen:
            raise FormatError(f"{self.path} has lost the entries up to digest {digest}; restore it from a backup")

    def entries(self) -> list[chain.Row]:
        """Everything that is written, in order."""
        with self._errors():
            return chain.rows(self._db)

    def export(self, path: Path | str) -> None:
        """Write the ledger as JSON lines, each with its hash."""
        Path(path).write_text("".join(map(chain.as_line, self.entries())), encoding="utf-8")

    def _guarantee(
        self, releases: Sequence[Release], unit: Unit, adjacency: Adjacency, delta: float, bounds: Bounds
    ) -> Guarantee:
        marks = self.marks()
        if marks and any(r.charges for r in releases):
            return accounting.no_guarantee(delta, marks)
        try:
            return accounting.cost(releases, unit, adjacency, delta, bounds)
        except (KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise FormatError(f"{self.path} holds a charge that is none ({error}): restore it from a backup") from error

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
        return found is not None and not id_.startswith(_NO_RELEASES)

    def _body_or_none(self, id_: str) -> str | None:
        row = self._db.execute("SELECT body FROM entries WHERE id = ?", (id_,)).fetchone()
        return None if row is None else str(row[0])

    def _append(self, id_: str, body: str, policy: Policy | None = None) -> None:
        if self._readable_only:
            raise FormatError(f"{self.path} {_NO_KEY}")
        entry = Entry(id_, body, _now(), *self.addressee, "" if policy is None else policy.version)
        chain.insert(self._db, self._key, self.digest().partition(":")[2], entry)

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
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise FormatError(f"{self.path} is not a ledger ({error}); restore it from a backup") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
