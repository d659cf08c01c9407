"""Heads of ledgers, which members of a federation hold for each other, so that a ledger cannot be put back unnoticed.

A head is the number and the hash of a ledger's last entry. Before it leaves, its party seals it with a key of its own,
so the other members can keep it and return it, but neither read nor make one. If the party can open a returned head,
and its chain does not have the entry, the chain was longer once: it was put back from an older backup.

A head also names the last loss that had been accepted when it was made. A loss that was accepted later covers it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tertulia.privacy.chain import GENESIS
from tertulia.privacy.head_store import NO_HEAD
from tertulia.privacy.home import Home
from tertulia.privacy.lost_entries import LostEntries, Missing
from tertulia.privacy.noise import NoiseKey

_ABOUT = b"tertulia ledger head"


class Head(NamedTuple):
    """A point of a ledger's chain."""

    entry: int
    hash: str
    after: str  # the hash of the last accepted loss before it, or GENESIS


def seal_head(home: Home) -> bytes:
    """Return the sealed head of a ledger, once all its entries are on disk."""
    home.ledger.sync()
    number, _, hash_ = home.ledger.digest().partition(":")
    data = int(number).to_bytes(8, "little") + bytes.fromhex(hash_) + bytes.fromhex(_anchors(home)[-1])
    nonce = os.urandom(12)
    return nonce + _cipher(home.key).encrypt(nonce, data, _ABOUT)


def open_head(key: NoiseKey, sealed: bytes) -> Head | None:
    """Open a head; None if another key has sealed it."""
    try:
        data = _cipher(key).decrypt(sealed[:12], sealed[12:], _ABOUT)
    except InvalidTag:
        return None
    return Head(int.from_bytes(data[:8], "little"), data[8:40].hex(), data[40:].hex())


def _cipher(key: NoiseKey) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(key.derive(b"tertulia-heads"))


def _anchors(home: Home) -> list[str]:
    return [GENESIS, *(loss.hash for loss in home.ledger.losses())]


class Compared(NamedTuple):
    """What the members' heads say about a ledger."""

    missing: tuple[Missing, ...]  # entries that the ledger had once
    strange: tuple[str, ...]  # members that hold heads of another noise key


def compare(home: Home, returned: Mapping[str, Sequence[bytes]]) -> Compared:
    """Compare a ledger with the heads that members have returned, without those that an accepted loss covers."""
    losses: tuple[LostEntries, ...] = home.ledger.losses()
    missing: dict[int, list[str]] = {}
    strange = []
    for member, sealed in returned.items():
        heads = [open_head(home.key, one) for one in sealed if one != NO_HEAD]
        for head in filter(None, heads):
            if home.ledger.digest(head.entry) != f"{head.entry}:{head.hash}" and not _covers(losses, head):
                missing.setdefault(head.entry, []).append(member)
        if None in heads and not any(loss.of_another_home for loss in losses):
            strange.append(member)
    found = (Missing(entry, tuple(dict.fromkeys(members))) for entry, members in sorted(missing.items()))
    return Compared(tuple(found), tuple(strange))


def _covers(losses: Sequence[LostEntries], head: Head) -> bool:
    """Tell whether a loss was accepted after a head was made, on this very chain."""
    anchors = [GENESIS, *(loss.hash for loss in losses)]
    return head.after in anchors[:-1]
