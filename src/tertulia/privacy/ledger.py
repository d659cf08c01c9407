"""A party's ledger: every release is charged on disk before it leaves.

The file is a SQLite database, and `record` syncs a charge to disk before it returns. After a crash the ledger may
contain a charge for a release that never left, but no release leaves without a charge. Methods with thousands of steps
in clear sync their rows only with their commits. Then `kill -9` loses no row, and a power failure loses only rows of
steps that will be run and recorded again.

The entries form a hash chain under the party's key (`chain`), which is checked whenever a ledger is opened. Every model
and the server of a run keep a digest of the ledger. Later the digest shows whether entries at the end were removed.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tertulia._disk import PRIVATE_DIRECTORY, private_file
from tertulia.errors import FormatError, JournalError, PolicyRefusal, Unreleased
from tertulia.privacy import accounting, chain
from tertulia.privacy.accounting import ClaimRow, Extent, Guarantee, charging_or_all, claim_table
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.approvals import Approval
from tertulia.privacy.chain import APPROVED, DOCUMENTS, GENESIS, LOST, MARK, WITHDRAWN, Entry
from tertulia.privacy.charges import NO_RELEASES, Charges
from tertulia.privacy.lost_entries import LostEntries, Missing, body_of, entry_id, read_losses
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reach import AS_CHARGED, Reach
from tertulia.privacy.releases import Release
from tertulia.privacy.reported_documents import Fingerprints, Numbered, ReportedDocuments
from tertulia.privacy.withdrawals import Withdrawal, Withdrawals

if TYPE_CHECKING:
    from tertulia.privacy.policy import Policy

__all__ = ["ClaimRow", "Guarantee", "Ledger", "Release", "charging_or_all"]
_WITHDRAWALS = "SELECT seq, body, time FROM entries WHERE id > ? AND id < ? AND seq > ? AND seq <= ? ORDER BY seq"
_LOSSES = "SELECT body, hash, time FROM entries WHERE id > ? AND id < ? ORDER BY seq"
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
            with suppress(OSError):  # SQLite will report the error
                private_file(self.path)
        self.durable = durable
        self.addressee = ("", "")  # the recipient of the next releases, and the hash of the agreed plan
        self._key = key
        self._lock = threading.RLock()
        self._level = ""  # of syncing, at present
        with self._errors():
            self._db = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
            self.close = weakref.finalize(self, self._db.close)
            self._charges = Charges(self._db)
            self._version()  # raises before a file of another format is changed
            self._db.execute("PRAGMA journal_mode=WAL")
            self._synchronise()
            self._prepare()

    def _prepare(self) -> None:
        """Create the tables of a new file; check the key and the chain."""
        if self._version() == 0:
            with self._transaction():
                if self._version() == 0:  # another process may have been first
                    chain.create(self._db, self._key)
        owner = chain.key_of(self._db)
        if self._key is not None and owner != self._key.commitment:
            raise FormatError(
                f"{self.path} belongs to another noise key: restore the two files of one home from the same backup"
            )
        self._readable_only = self._key is None and owner is not None
        if not self._readable_only:
            chain.check(self.path, chain.rows(self._db), self._key)

    def _version(self) -> int:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        chain.check_format(self.path, version)
        return int(version)

    def record(self, release: Release, policy: Policy | None = None, *, sync: bool = True) -> bool:
        """Check a release against the policy, if given, and charge it; return False if it was charged before."""
        with self._transaction(sync=sync):
            if self._is_known(release):
                return False
            self._check_parents(release)
            if policy is not None:
                policy.check(release, self)
            self._append_release(release, policy)
        return True

    def _is_known(self, release: Release) -> bool:
        """Tell whether this release was charged before; raise if it had other contents."""
        known = self._body_or_none(release.id)
        if known is not None and not Release.from_json(known).says_the_same(Release.from_json(release.to_json())):
            raise PolicyRefusal("one release, one content", f"'{release.id}' was recorded before with other contents")
        return known is not None

    def record_reports(self, release: Release, documents: Fingerprints, policy: Policy | None = None) -> Numbered:
        """Charge for reports of these documents' tokens; `reported_documents` finds new documents and their cost.

        The release covers the first version of every document; each later version has its own release. Budgets are
        checked whenever a document is new, because an earlier charge may then cover more documents of a user. An entry
        without documents says that a later run has more members with documents of a user. Withdrawn documents are
        refused.
        """
        with self._transaction():
            self.withdrawals().check(documents)
            known = self.reported(release.id)
            numbered, new = known.number(documents)
            body = new.to_json(release.id, None if policy is None else policy.bounds, release.user_at)
            is_news = new.is_news or known.lacks(release.user_at)
            after = known.with_batch(body, "" if policy is None else policy.version) if is_news else known
            versions = map(release.version, range(1, numbered.versions + 1))
            missing = [version for version in versions if not self._is_known(version)]
            if policy is not None and (len(new) or missing):
                for version in missing:
                    policy.check_rules(version, self)
                policy.check_budgets(self._charges.covering(release, after, policy), self)
            for version in missing:
                self._append_release(version, policy)
            if is_news:
                self._append(f"{DOCUMENTS}{release.id}#{known.batches}", body, policy)
        self._charges.adopt(release.id, after)
        return numbered

    def reported(self, charge: str) -> ReportedDocuments:
        """Return the documents whose reports a charge covers."""
        with self._errors():
            return self._charges.reported(charge)

    def every_reported(self) -> list[ReportedDocuments]:
        """Return the documents whose reports any charge covers."""
        with self._errors():
            return self._charges.every_reported()

    def withdraw(self, given: Sequence[Withdrawal]) -> int:
        """Record withdrawals for ever; return how many are new. No charge changes."""
        with self._transaction():
            new = [one for one in given if self._body_or_none(one.entry_id) is None]
            for one in new:
                self._append(one.entry_id, one.to_json())
        return len(new)

    def withdrawals(self, *, after: int = 0, until: int | None = None) -> Withdrawals:
        """Return the withdrawals among the entries after one number, up to another."""
        last = WITHDRAWN[:-1] + chr(ord(WITHDRAWN[-1]) + 1)
        with self._errors():
            most = 2**62 if until is None else until
            rows = chain.texts(self._db.execute(_WITHDRAWALS, (WITHDRAWN, last, after, most)).fetchall(), first=1)
        return Withdrawals.collect(rows, self._key, after)

    def approve(self, given: Approval) -> None:
        """Record a person's approval of a plan, once. No charge changes."""
        with self._transaction():
            if self._body_or_none(given.entry_id) is None:
                self._append(given.entry_id, given.to_json())

    def approvals(self, run: str) -> list[Approval]:
        """Return the approvals of a run's plans, in order."""
        start = f"{APPROVED}{run}:"
        return [Approval.from_json(e.body, e.time) for e, _, _ in self.entries() if e.id.startswith(start)]

    def accept_loss(self, missing: Sequence[Missing]) -> None:
        """Record that entries are lost, as other members' heads show; their cost is in no total from now on."""
        with self._transaction():
            self._append(entry_id(len(self.losses()) + 1), body_of(missing))

    def losses(self) -> tuple[LostEntries, ...]:
        """Return the losses that were accepted, in order."""
        with self._errors():
            return read_losses(chain.texts(self._db.execute(_LOSSES, (LOST, LOST + "~")).fetchall()))

    def bytes_sent(self, but: Release, *, in_round: bool = False) -> int:
        """Count the bytes released in a release's run or round, without its own: a repeat sends the same bytes."""
        run = [r for r in self.releases() if r.run == but.run and r.id != but.id]
        return sum(r.nbytes for r in run if r.round == but.round or not in_round)

    def bytes_sent_today(self, but: Release) -> int:
        """Count the bytes released since midnight UTC in all runs, without this release."""
        with self._errors():
            sent = [release for release in self._charges.since(_now()[:10]) if release.id != but.id]
        return sum(release.nbytes for release in sent if release.verb != "reports")  # reports stay at the party

    def check(self, release: Release, policy: Policy) -> None:
        """Raise `PolicyRefusal` if the party's policy forbids this release; nothing is recorded."""
        self._check_parents(release)
        policy.check(release, self)

    def mark_non_private(self, reason: str) -> None:
        """Record that nothing here is protected (for example, the noise key is known); epsilon is then infinite."""
        with self._transaction():
            if self._body_or_none(MARK + reason) is None:
                self._append(MARK + reason, json.dumps(reason))

    def sync(self) -> None:
        """Wait until every row is on disk."""
        if self.durable:
            with self._errors():
                self._db.execute("PRAGMA wal_checkpoint(FULL)")

    def releases(self) -> list[Release]:
        """Return all releases, in order."""
        with self._errors():
            return list(self._charges.releases().values())

    def marks(self) -> list[str]:
        """Return the reasons why the ledger is non-private; empty if it is private."""
        with self._errors():
            return self._charges.marks()

    def cost(
        self, unit: Unit, adjacency: Adjacency, delta: float, *, bounds: Bounds | None = None,
        with_releases: Sequence[Release] = (), tokens: int | None = None, reach: Reach = AS_CHARGED,
    ) -> Guarantee:  # fmt: skip
        """Compute the real guarantee of all releases so far, together with `with_releases`.

        `with_releases` may hold new releases, and recorded ones whose charges now cover more documents. The latter
        replace their records. Each charge is converted by the limits that were in force when it was made. `bounds`
        (today's limits), `tokens` and `reach` are parameters of `accounting.cost`.
        """
        releases = {release.id: release for release in self.releases()}
        for more in with_releases:
            if more.id not in releases or more.charged is not None:
                releases[more.id] = more
        return self._guarantee(list(releases.values()), (unit, adjacency), delta, bounds or Bounds(), tokens, reach)

    def table(self, delta: float = 1e-6, *, population: int | None = None, words: int | None = None) -> list[ClaimRow]:
        """Compare claimed with real guarantees by thing, unit, mechanism and claim; see `Extent` for the parameters."""
        known = {release.id: release for release in self.releases()}
        real = lambda charged, unit, how: self._guarantee(charged, (unit, how), delta, Bounds())  # noqa: E731
        return claim_table(known, real, Extent(population, words))

    def digest(self, seq: int | None = None) -> str:
        """Return number and hash of entry `seq`, by default the last, which covers all before it; "" if it is missing.

        >>> Ledger(":memory:").digest()[:8]
        '0:000000'
        """
        last = "SELECT seq, hash FROM entries WHERE ? IS NULL OR seq = ? ORDER BY seq DESC LIMIT 1"
        with self._errors():
            found = self._db.execute(last, (seq, seq)).fetchone()
        return f"{found[0]}:{found[1]}" if found is not None else "" if seq else f"0:{GENESIS}"

    def verify(self, digest: str | None = None) -> None:
        """Raise `FormatError` if an entry was changed, or if the ledger no longer contains the entry of a `digest`."""
        if self._readable_only:
            raise FormatError(f"{self.path} {_NO_KEY}")
        with self._errors():
            seen = chain.check(self.path, chain.rows(self._db), self._key)
        if digest is not None and digest.rpartition(":")[2] not in seen:
            raise FormatError(f"{self.path} has lost the entries up to digest {digest}; restore it from a backup")

    def entries(self) -> list[chain.Row]:
        """Return all entries, in order."""
        with self._errors():
            return chain.rows(self._db)

    def export(self, path: Path | str) -> None:
        """Write the ledger as JSON lines, each with its hash."""
        Path(path).write_text("".join(map(chain.as_line, self.entries())), encoding="utf-8")

    def _guarantee(
        self, releases: Sequence[Release], of: tuple[Unit, Adjacency], delta: float, bounds: Bounds,
        tokens: int | None = None, reach: Reach = AS_CHARGED,
    ) -> Guarantee:  # fmt: skip
        marks = self.marks()
        if marks and any(r.charges for r in releases):
            return accounting.no_guarantee(delta, marks)
        try:
            found = accounting.cost(releases, *of, delta, bounds, tokens=tokens, reach=reach)
            return replace(found, assumptions=(*found.assumptions, *(loss.text for loss in self.losses())))
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
            return self._body_or_none(id_) is not None and not id_.startswith(NO_RELEASES)

    def _body_or_none(self, id_: str) -> str | None:
        row = self._db.execute("SELECT body FROM entries WHERE id = ?", (id_,)).fetchone()
        return None if row is None else str(row[0])

    def _append_release(self, release: Release, policy: Policy | None) -> None:
        """Write a release with the limits that are in force; a release that costs nothing needs none."""
        limits = release.limits if policy is None or not release.charges else policy.bounds.refined(release.limits)
        self._append(release.id, replace(release, limits=limits).to_json(), policy)

    def _append(self, id_: str, body: str, policy: Policy | None = None) -> None:
        if self._readable_only:
            raise FormatError(f"{self.path} {_NO_KEY}")
        entry = Entry(id_, body, _now(), *self.addressee, "" if policy is None else policy.version)
        chain.insert(self._db, self._key, self.digest().partition(":")[2], entry)

    def _synchronise(self, *, now: bool = True) -> None:
        level = ("FULL" if now else "NORMAL") if self.durable else "OFF"  # FULL: every commit is synced
        if level != self._level:
            self._db.execute(f"PRAGMA synchronous={level}")
            self._level = level

    @contextmanager
    def _transaction(self, *, sync: bool = True) -> Iterator[None]:
        """Run a transaction, with one writer at a time among threads and processes; with `sync`, sync it to disk."""
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
        """Hold the connection's lock, and convert SQLite's errors into this package's."""
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                raise JournalError(f"the ledger {self.path} cannot be used ({error}); nothing was released") from error
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise FormatError(f"{self.path} is not a ledger ({error}); restore it from a backup") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
