"""A ledger looked at while its party writes: read-only, without the key, without a lock that could be in the way.

Opening a ledger as `Ledger` does lays out a new one where there is none yet; whoever only looks must not do that.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tertulia.errors import FormatError
from tertulia.privacy.chain import DOCUMENTS, KEY, MARK
from tertulia.privacy.releases import Release

_ROWS = "SELECT seq, id, body, time FROM entries WHERE seq > ? ORDER BY seq"


class Seen(NamedTuple):
    """An entry that is a release."""

    seq: int
    time: str  # UTC
    release: Release


def releases_after(path: Path, seq: int = 0) -> list[Seen]:
    """The releases after an entry's number; none where there is no ledger, or where it cannot be read just now."""
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)) as db:
            rows = db.execute(_ROWS, (seq,)).fetchall()
        return [
            Seen(number, time, Release.from_json(body))
            for number, id_, body, time in rows
            if not id_.startswith((DOCUMENTS, KEY, MARK))
        ]
    except (sqlite3.Error, FormatError):
        return []
