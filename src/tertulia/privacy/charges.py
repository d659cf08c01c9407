"""The releases of a ledger, each with the limits under which it was charged, and the users of its documents.

Rows never change, so each is read once.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

from tertulia.errors import FormatError
from tertulia.privacy import chain
from tertulia.privacy.chain import APPROVED, DOCUMENTS, KEY, LOST, MARK, WITHDRAWN
from tertulia.privacy.releases import Release, version_id
from tertulia.privacy.reported_documents import Charged, InForce, ReportedDocuments

if TYPE_CHECKING:
    from tertulia.privacy.policy import Policy

NO_RELEASES = (KEY, MARK, DOCUMENTS, WITHDRAWN, LOST, APPROVED)
_NEW_ROWS = "SELECT seq, id, CASE WHEN id LIKE ? THEN '' ELSE body END, policy FROM entries WHERE seq > ? ORDER BY seq"
_BATCHES = "SELECT body, policy FROM entries WHERE id > ? AND id < ? ORDER BY seq LIMIT -1 OFFSET ?"


class Charges:
    """The releases and marks in a ledger's rows."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._releases: dict[str, Release] = {}  # those up to entry number `_seen`
        self._seen = 0
        self._reported: dict[str, ReportedDocuments] = {}  # by the id of the charge

    def releases(self) -> dict[str, Release]:
        """Return all releases by id, in order."""
        grown = set()
        for seq, id_, body, policy in chain.texts(self._new_rows(), first=1):
            if id_.startswith(DOCUMENTS):
                grown.add(id_.removeprefix(DOCUMENTS).rpartition("#")[0])
            elif not id_.startswith(NO_RELEASES):
                release = Release.from_json(body)
                self._releases[id_] = replace(release, charged=Charged((InForce(release.limits, policy),)))
            self._seen = seq
        for charge in grown:
            self._cover(charge)
        return self._releases

    def _new_rows(self) -> list[tuple[int, str, str, str]]:
        return self._db.execute(_NEW_ROWS, (DOCUMENTS + "%", self._seen)).fetchall()

    def _cover(self, charge: str) -> None:
        """Note what a charge for reports covers by now: one for each version of documents."""
        known = self.reported(charge)
        for number in range(1, known.versions + 1):
            found = self._releases.get(version_id(charge, number))
            if found is not None and found.charged is not None:
                charged = known.charged(number, found.charged.in_force[0])
                at = None if found.user_at is None else max(found.user_at, known.user_at)
                self._releases[found.id] = replace(found, charged=charged, user_at=at)

    def reported(self, charge: str) -> ReportedDocuments:
        """Return the documents whose reports a charge covers."""
        known = self._reported.setdefault(charge, ReportedDocuments())
        first, last = f"{DOCUMENTS}{charge}#", f"{DOCUMENTS}{charge}$"  # '$' comes after '#'
        for body, policy in self._db.execute(_BATCHES, (first, last, known.batches)).fetchall():
            try:
                known.add_batch(body, policy)
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise FormatError(f"a ledger's row is damaged ({error}): restore it from a backup") from error
        return known

    def every_reported(self) -> list[ReportedDocuments]:
        """Return the documents whose reports are covered by any charge."""
        rows = self._db.execute("SELECT id FROM entries WHERE id LIKE ? ORDER BY seq", (DOCUMENTS + "%",)).fetchall()
        charges = dict.fromkeys(id_.removeprefix(DOCUMENTS).rpartition("#")[0] for (id_,) in rows)
        return [self.reported(charge) for charge in charges]

    def adopt(self, charge: str, known: ReportedDocuments) -> None:
        """Accept what was just written, as if it were read."""
        self._reported[charge] = known

    def covering(self, release: Release, after: ReportedDocuments, policy: Policy) -> list[Release]:
        """Return the charges for all versions of documents, as they are once all that is known `after` is written."""
        rows, found, own = self.releases(), [], InForce(policy.bounds, policy.version)
        for number in range(1, max(after.versions, 1) + 1):
            row = rows.get(version_id(release.id, number))
            before = own if row is None or row.charged is None else row.charged.in_force[0]
            found.append(replace(release.version(number), charged=after.charged(number, before)))
        return found

    def since(self, time: str) -> list[Release]:
        """Return what was charged since then."""
        known = self.releases()
        rows = self._db.execute("SELECT id FROM entries WHERE time >= ?", (time,)).fetchall()
        return [known[id_] for (id_,) in rows if id_ in known]

    def marks(self) -> list[str]:
        """Return the reasons why a ledger is non-private, if it is."""
        rows = self._db.execute("SELECT body FROM entries WHERE id LIKE ? ORDER BY seq", (MARK + "%",))
        return [str(json.loads(body)) for (body,) in rows.fetchall()]
