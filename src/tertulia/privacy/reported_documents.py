"""The documents whose tokens a party has reported: only new documents give new reports, and only they may cost.

A report is drawn from one token alone. Its noise is a function of the party's key, the document's content, a number
that distinguishes equal documents, and the token's place. So a document that is reported again, in another round or
run, gives the same reports, no matter which other documents were added or removed.

The meaning of a charge: its epsilon holds for every token (or user) separately. Reports of other documents say nothing
about a token, so a document that joins later, at the same epsilon, does not raise what any token has spent. One charge
covers the first version of all documents (parallel composition). An edited document has the same id and another
content. Its tokens, most of them unchanged, are reported again with fresh noise, so the reports of both versions add up
for it: the second version of documents has its own charge, the third another. Together the charges are the cost of the
document that was edited most often, the worst case.

Documents are distinguished by their ids. Without ids a document is identified by a hash of its text, so an edited one
counts as another document; the ledger lists this as an assumption. Whether a document is new, edited or unchanged is
visible, because its reports are new or the same; the ledger lists this as an assumption, too.

A number that was given to a content stays with that document permanently, also after the document has left. If another
document could get it, a new document with the same words would take over the old reports, which would show that the two
are equal, at any epsilon. A document that returns under its id, with its earlier words, has its earlier reports.

All documents of one user say something about the user, so the ledger also holds the user of each document (a MAC of the
user's name): `user_totals` adds them up. It also holds the limits of the party's policy at that time, by which tokens
are converted to documents: a later policy says nothing about earlier reports.
"""

from __future__ import annotations

import base64
import copy
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from tertulia.privacy.adjacency import Bounds

_MAC, _NUMBER = 16, 4  # bytes
_KEY = 2 * _MAC + _NUMBER
_ROW = _KEY + _NUMBER
_FIRST = bytes(_NUMBER)
NOBODY = bytes(_MAC)  # in place of the MAC of a user, of a document that names none
NO_IDS = "documents have no ids: an edited one counts as another document"


class Fingerprints(NamedTuple):
    """Documents by MACs of 16 bytes: [D] of their ids, of what they contain, and of whose they are."""

    ids: Sequence[bytes]
    contents: Sequence[bytes]
    users: Sequence[bytes] = ()  # empty: no document names its user

    def each(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Iterate over id, content and user of each document."""
        return zip(self.ids, self.contents, self.users or [NOBODY] * len(self.ids), strict=True)


class Numbered(NamedTuple):
    """Numbers by which documents' reports are drawn."""

    numbers: list[int]  # [D] which of several documents with these contents each one is
    versions: int  # how many versions of one of these documents have been reported, at most


class NewDocuments(NamedTuple):
    """Documents that a ledger must remember, packed: id, content, which of those with both, number; and their users."""

    rows: list[bytes]
    users: list[bytes]
    found: list[bytes]  # documents that are known, but not as this user's
    found_users: list[bytes]

    def to_json(self, charge: str, limits: Bounds | None, user_at: int | None = None) -> str:
        """Write the body of an entry; `user_at`: at how many members one user may have documents."""
        documents, users = (b"".join(part) for part in (self.rows + self.found, self.users + self.found_users))
        body: dict[str, Any] = {"charge": charge, "documents": base64.b64encode(documents).decode()}
        body["users"] = base64.b64encode(users).decode()
        if limits is not None:
            body["limits"] = [limits.tokens_per_document, limits.documents_per_user]
        if user_at is not None:
            body["user_at"] = user_at
        return json.dumps(body)

    @property
    def is_news(self) -> bool:
        """Whether there is anything to remember."""
        return bool(self.rows or self.found)

    def __len__(self) -> int:
        return len(self.rows)


class InForce(NamedTuple):
    """The limits under which something was charged: written beside it or, before that was done, the policy's name."""

    limits: Bounds | None
    policy: str = ""

    def known(self, now: Bounds) -> Bounds:
        """Return the limits that are known to have held: those of today's policy only if it is that very policy."""
        if self.limits is not None:
            return self.limits
        return now if self.policy in now.policies else Bounds()


@dataclass(frozen=True)
class Charged:
    """Facts about a charge that a ledger holds beside its row."""

    in_force: tuple[InForce, ...]
    users: Mapping[bytes, int] | None = None  # how many documents each had reported; None: a charge for no reports
    alone: int = 0  # documents that name no user: each counts as its user's only one
    unknown: int = 0  # documents that were charged before users were written down

    def limits(self, now: Bounds) -> Bounds:
        """Return the loosest limits under which it was charged; `now`: today's, for rows that hold none."""
        return Bounds.loosest(case.known(now) for case in self.in_force)


@dataclass
class _Version:
    """The documents whose n-th version was reported."""

    in_force: set[InForce] = field(default_factory=set)
    users: Counter[bytes] = field(default_factory=Counter)
    alone: int = 0
    unknown: int = 0


def limits_or_none(written: Any) -> Bounds | None:
    """Read limits as they stand in an entry."""
    if written is None:
        return None
    tokens, documents = (None if limit is None else int(limit) for limit in written)
    return Bounds(tokens, documents)


class ReportedDocuments:
    """The documents that a charge covers."""

    def __init__(self) -> None:
        self.batches = 0
        self.user_at = 0  # at how many members one user may have documents, at most; 0: not recorded
        self._numbers: dict[bytes, bytes] = {}  # id, content and which -> number
        self._next: dict[bytes, int] = {}  # content -> the first number that no document with it has had
        self._contents: Counter[bytes] = Counter()  # id -> contents that it has had
        self._later: dict[bytes, int] = {}  # id and content -> which of its versions, if not the first
        self._owners: dict[bytes, tuple[bytes, ...]] = {}  # id, content and which -> whose it is, or was
        self._versions: dict[int, _Version] = {}

    @property
    def versions(self) -> int:
        """How many versions of one document there have been, at most."""
        return max(self._versions, default=0)

    def add_batch(self, body: str, policy: str = "") -> None:
        """Add the documents of an entry that was written under a policy of this name."""
        found = json.loads(body)
        case = InForce(limits_or_none(found.get("limits")), policy)
        self.user_at = max(self.user_at, int(found.get("user_at", 0)))
        packed = base64.b64decode(found["documents"])
        users = base64.b64decode(found["users"]) if "users" in found else b""
        grown, named = set(), []  # versions of which documents are new; whose first versions are new
        for start, place in zip(range(0, len(packed), _ROW), itertools.count(0, _MAC)):
            key, user = packed[start : start + _KEY], users[place : place + _MAC]
            if key in self._numbers:
                version = self._later.get(key[: 2 * _MAC], 1)
            else:
                version = self._add(key, packed[start + _KEY : start + _ROW])
                grown.add(version)
                if version == 1 and user not in (b"", NOBODY):
                    self._owners[key] = (user,)
                    named.append(user)
                    continue
                self._versions[version].unknown += 1
            if user:
                self._own(self._versions[version], key, user)
        for number in grown:
            self._versions[number].in_force.add(case)
        if named:
            self._versions[1].users.update(named)
        self.batches += 1

    def with_batch(self, body: str, policy: str) -> Self:
        """Return a copy that knows one more entry."""
        other = copy.copy(self)
        for name in ("_numbers", "_next", "_contents", "_later", "_owners"):
            setattr(other, name, copy.copy(getattr(self, name)))
        other._versions = copy.deepcopy(self._versions)
        other.add_batch(body, policy)
        return other

    def lacks(self, user_at: int | None) -> bool:
        """Tell whether more members than before may have documents of one user that was charged."""
        return self.batches > 0 and (user_at or 0) > self.user_at

    def has_id(self, id_: bytes) -> bool:
        """Tell whether a document with this id was ever reported."""
        return id_ in self._contents

    def ids_of_user(self, user: bytes) -> set[bytes]:
        """Return the ids of all documents of a user that were ever reported."""
        return {key[:_MAC] for key, owners in self._owners.items() if user in owners}

    def charged(self, version: int, own: InForce) -> Charged:
        """Return what is known of the charge for a version; `own`: the limits beside the charge itself."""
        found = self._versions.get(version, _Version())
        return Charged((own, *found.in_force), found.users, found.alone, found.unknown)

    def _add(self, key: bytes, number: bytes) -> int:
        """Remember a document, and say which version of it this is."""
        id_, content = key[:_MAC], key[_MAC : 2 * _MAC]
        if key.endswith(_FIRST):  # of several with the same id and content, the others are versions of nothing
            self._contents[id_] += 1
            if self._contents[id_] > 1:
                self._later[key[: 2 * _MAC]] = self._contents[id_]
        version = self._later.get(key[: 2 * _MAC], 1)
        if version not in self._versions:
            self._versions[version] = _Version()
        self._numbers[key] = number
        self._next[content] = max(self._next.get(content, 0), int.from_bytes(number, "little") + 1)
        return version

    def _own(self, version: _Version, key: bytes, user: bytes) -> None:
        """Note the user of a document; one that changes hands counts for each of its users."""
        before, alone = self._owners.get(key, ()), key[:_MAC]
        user = alone if user == NOBODY else user
        version.unknown -= not before
        if alone in before and user != alone:  # now it says whose it is
            version.users[alone] -= 1
            version.alone -= 1
            before = ()
        version.users[user] += 1
        version.alone += user == alone
        self._owners[key] = (*before, user)

    def number(self, documents: Fingerprints) -> tuple[Numbered, NewDocuments]:
        """Number documents, the known ones as before, and say which are new; nothing is remembered yet."""
        numbers, new = [], NewDocuments([], [], [], [])
        equal, given, contents = Counter[bytes](), dict[bytes, int](), Counter[bytes]()
        for id_, content, user in documents.each():
            whole = id_ + content
            which = equal[whole].to_bytes(_NUMBER, "little")
            equal[whole] += 1
            key = whole + which
            number = self._numbers.get(key)
            if number is None:
                first = given.get(content, self._next.get(content, 0))
                given[content] = first + 1
                number = first.to_bytes(_NUMBER, "little")
                new.rows.append(key + number)
                new.users.append(user)
                contents[id_] += which == _FIRST
            elif self._is_news(key, user):
                new.found.append(key + number)
                new.found_users.append(user)
            numbers.append(int.from_bytes(number, "little"))
        most = max((self._contents[id_] + contents[id_] for id_ in documents.ids), default=1)
        return Numbered(numbers, most), new

    def _is_news(self, key: bytes, user: bytes) -> bool:
        """Return whether it was not known that a document is this user's."""
        owners = self._owners.get(key, ())
        return not owners if user == NOBODY else user not in owners
