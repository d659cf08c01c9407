"""Which documents a party has reported the tokens of: only new ones are new reports, and only they may cost.

A report is drawn from one token alone, and its noise is a function of the party's key, the document's content, a number
that tells equal documents apart, and the token's place. So a document that is reported again, in another round or run,
gives the same reports, whatever documents have come or gone beside it.

What a charge means. Its epsilon is promised to every token (or user) by itself. Reports of other documents say nothing
about a token, so a document that joins later, at the same epsilon, does not raise what any token has spent: the charge
is made once, for the first version of all documents that there ever are (parallel composition). An edited document has
the same id and another content. Its tokens, of which most are those of before, are reported again under fresh noise,
so both versions' reports add up for it: the second version of documents has a charge of its own, the third another.
Together they are what the most often edited document has spent, the worst there is.

Documents are told apart by their ids. Without ids a document is known by a hash of its text, so an edited one counts as
another: the ledger names that as an assumption. That a document is new, edited, or the same as before shows, for its
reports are new or the same: that, too, is an assumption.

A number stays with its document as long as it is there. Were it given by order alone, a new document with the words of
an old one might take over its reports, which would show that the two are equal.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

_MAC, _NUMBER = 16, 4  # bytes
_ROW = 2 * _MAC + 2 * _NUMBER
NO_IDS = "documents have no ids: an edited one counts as another document"


class Fingerprints(NamedTuple):
    """Documents by MACs of 16 bytes: [D] of their ids, and of what they contain."""

    ids: Sequence[bytes]
    contents: Sequence[bytes]


class Numbered(NamedTuple):
    """How documents' reports are drawn."""

    numbers: list[int]  # [D] which of several documents with these contents each one is
    versions: int  # how many versions of one of these documents have been reported, at most


class NewDocuments(NamedTuple):
    """What a ledger has to remember: id, content, which of those with both, number; packed."""

    rows: list[bytes]

    def to_json(self, charge: str) -> str:
        """The body of an entry."""
        return json.dumps({"charge": charge, "documents": base64.b64encode(b"".join(self.rows)).decode()})

    def __len__(self) -> int:
        return len(self.rows)


class ReportedDocuments:
    """The documents that a charge covers."""

    def __init__(self) -> None:
        self.batches = 0
        self._numbers: dict[bytes, bytes] = {}  # id, content and which -> number
        self._versions: Counter[bytes] = Counter()  # id -> contents that it has had

    def add_batch(self, body: str) -> None:
        """Take in what an entry remembers."""
        packed = base64.b64decode(json.loads(body)["documents"])
        for start in range(0, len(packed), _ROW):
            self._add(packed[start : start + _ROW])
        self.batches += 1

    def _add(self, row: bytes) -> None:
        self._numbers[row[:-_NUMBER]] = row[-_NUMBER:]
        if not any(row[2 * _MAC : -_NUMBER]):
            self._versions[row[:_MAC]] += 1

    def number(self, documents: Fingerprints) -> tuple[Numbered, NewDocuments]:
        """Number documents, the known ones as before, and say which are new; nothing is remembered yet."""
        keys, equal = [], Counter[bytes]()
        for id_, content in zip(*documents, strict=True):
            keys.append(id_ + content + equal[id_ + content].to_bytes(_NUMBER, "little"))
            equal[id_ + content] += 1
        found = [self._numbers.get(key) for key in keys]
        taken = {key[_MAC : 2 * _MAC] + number for key, number in zip(keys, found, strict=True) if number is not None}
        free, rows, versions = Counter[bytes](), [], self._versions.copy() if None in found else self._versions
        for i, (key, number) in enumerate(zip(keys, found, strict=True)):
            if number is None:
                content = key[_MAC : 2 * _MAC]
                while (lowest := free[content].to_bytes(_NUMBER, "little")) and content + lowest in taken:
                    free[content] += 1
                free[content] += 1
                found[i] = lowest
                rows.append(key + lowest)
                versions[key[:_MAC]] += not any(key[2 * _MAC :])
        most = max((versions[id_] for id_ in documents.ids), default=1)
        return Numbered([int.from_bytes(n or b"", "little") for n in found], most), NewDocuments(rows)
