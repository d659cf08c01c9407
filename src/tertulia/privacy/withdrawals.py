"""Withdrawals: users and documents that a party never uses again.

A withdrawal is an entry of the party's ledger, in its hash chain, so it is as durable as a charge and cannot be edited.
It names nobody: it holds MACs by the home's key. The entry of a user also holds the ids of the user's documents, which
stay out even if they no longer say whose they are, and every entry holds what the documents contained, so that the same
text under another id is noticed.

Nothing that was charged changes: what has left cannot be called back, and its cost stays in the ledger.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tertulia.errors import FormatError, PolicyRefusal
from tertulia.privacy.chain import WITHDRAWN
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reported_documents import NOBODY, Fingerprints

Kind = Literal["user", "document"]
RULE = "withdrawal"
NOT_RECALLED = "Totals and models that were sent before cannot be called back."
_MAC = 16  # bytes
_DAMAGED = "an entry of a withdrawal is damaged ({}): restore the ledger from a backup"


def mac_of_id(key: NoiseKey, name: str) -> bytes:
    """Compute the MAC by which a ledger knows a document's id."""
    return key.mac(b"id", name.encode())


def mac_of_user(key: NoiseKey, user: str) -> bytes:
    """Compute the MAC by which a ledger knows a user."""
    return key.mac(b"user", user.encode())


class Withdrawal(NamedTuple):
    """One entry: who or what is withdrawn, with the ids and contents of the documents that were known then."""

    kind: Kind
    mac: bytes
    ids: frozenset[bytes] = frozenset()
    contents: frozenset[bytes] = frozenset()

    @classmethod
    def of(cls, key: NoiseKey, kind: Kind, name: str) -> Withdrawal:
        """Return the withdrawal of a name, with nothing known of its documents."""
        return cls(kind, mac_of_user(key, name) if kind == "user" else mac_of_id(key, name))

    @property
    def entry_id(self) -> str:
        """The id of its entry: one name is withdrawn once."""
        return f"{WITHDRAWN}{self.kind}:{self.mac.hex()}"

    def to_json(self) -> str:
        """Write the body of the entry."""
        body = {"withdrawn": self.kind, "mac": self.mac.hex()}
        return json.dumps({**body, "documents": _packed(self.ids), "contents": _packed(self.contents)})

    @classmethod
    def from_json(cls, body: str) -> Withdrawal:
        """Read the body of an entry; raise `FormatError` if it is none."""
        try:
            found = json.loads(body)
            kind, mac = found["withdrawn"], bytes.fromhex(found["mac"])
            if kind not in ("user", "document") or len(mac) != _MAC:
                raise FormatError(_DAMAGED.format("neither a user nor a document"))
            return cls(kind, mac, _unpacked(found["documents"]), _unpacked(found["contents"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(_DAMAGED.format(error)) from error


@dataclass(frozen=True)
class Withdrawals:
    """The withdrawals of a ledger, or of a stretch of it."""

    last: int = 0  # number of the last entry
    users: frozenset[bytes] = frozenset()
    documents: frozenset[bytes] = frozenset()  # ids that were withdrawn themselves
    of_users: frozenset[bytes] = frozenset()  # ids of withdrawn users' documents
    contents: frozenset[bytes] = frozenset()
    since: str = ""  # when the first was recorded, UTC
    key: NoiseKey | None = field(default=None, repr=False)  # None: they can be counted only

    @classmethod
    def collect(cls, rows: Iterable[tuple[int, str, str]], key: NoiseKey | None, last: int = 0) -> Withdrawals:
        """Read numbers, bodies and times of entries; `last` is the number to report if there is none."""
        found, since = [], ""
        for seq, body, time in rows:
            found.append(Withdrawal.from_json(body))
            last, since = seq, since or time
        users, documents = ([one for one in found if one.kind == kind] for kind in ("user", "document"))
        return cls(
            last,
            frozenset(one.mac for one in users),
            frozenset(one.mac for one in documents),
            frozenset().union(*(one.ids for one in users)),
            frozenset().union(*(one.contents for one in found)),
            since,
            key,
        )

    def __bool__(self) -> bool:
        return bool(self.users or self.documents)

    def cover(self, id_: bytes, user: bytes) -> bool:
        """Tell whether a document is withdrawn, by the MACs of its id and its user.

        An id of a withdrawn user's document counts only where the document names no user: ids need not be unique, and
        another user's document may have the same.
        """
        return user in self.users or id_ in self.documents or (user == NOBODY and id_ in self.of_users)

    def __str__(self) -> str:
        """Say what is withdrawn, since when, and what cannot be called back; empty if nothing is.

        Documents of users are those that were known at the withdrawal; later ones of theirs are out, too.
        """
        if not self:
            return ""
        whose = counted(len(self.users), 0)
        own = f"{counted(0, len(self.of_users)) or 'the documents'} of {whose}" if whose else ""
        what = " and ".join(filter(None, [own, counted(0, len(self.documents))]))
        return f"Withdrawn since {self.since[:10]}: {what}. {NOT_RECALLED}"

    def check(self, documents: Fingerprints) -> None:
        """Raise `PolicyRefusal` if one of these documents is withdrawn: nothing of it is reported again."""
        if self and any(self.cover(id_, user) for id_, _, user in documents.each()):
            raise PolicyRefusal(RULE, "a document of this run, or its user, was withdrawn: it is not reported again")


def counted(users: int, documents: int) -> str:
    """Format numbers of withdrawn users and documents; empty if there are none.

    >>> counted(1, 0), counted(2, 1)
    ('1 user', '2 users and 1 document')
    """
    parts = [(users, "user"), (documents, "document")]
    return " and ".join(f"{number:,} {noun}{'s' * (number > 1)}" for number, noun in parts if number)


def _packed(macs: Iterable[bytes]) -> str:
    return base64.b64encode(b"".join(sorted(macs))).decode()


def _unpacked(text: str) -> frozenset[bytes]:
    packed = base64.b64decode(text, validate=True)
    if len(packed) % _MAC:
        raise FormatError(_DAMAGED.format("a MAC is cut off"))
    return frozenset(packed[start : start + _MAC] for start in range(0, len(packed), _MAC))
