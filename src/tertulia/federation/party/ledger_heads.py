"""A party's half of the exchange of ledger heads: what others hold of its ledger, and what it holds of theirs.

In a run with secure sums, a party answers no question until all other members have shown the heads that they hold of
its ledger, and its ledger has the entries of all. Then it gives them its present head. The server passes on boxes that
it cannot open. A challenge in each box's key makes boxes of earlier exchanges useless.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import U8, Array
from tertulia._disk import atomic_write
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation import faults
from tertulia.federation.party.failures import OLDER_LEDGER
from tertulia.federation.party.member_keys import FOLDER, RULE, MemberKeys, checked_bytes
from tertulia.federation.secure.keys import KEY_BYTES, derive, seal, unseal
from tertulia.federation.secure.lists import colluding
from tertulia.federation.secure.messages import (
    HEAD_SALT,
    HELD_BOX,
    NEW_BOX,
    AskChallenge,
    Challenge,
    Challenges,
    HeldHeads,
    NewHeads,
)
from tertulia.federation.types import Nothing, PartyId
from tertulia.privacy.head_store import HEAD_BYTES, HeadStore
from tertulia.privacy.ledger_heads import compare, seal_head
from tertulia.privacy.lost_entries import Missing

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

NOT_SHOWN = "the members have not shown yet what they hold of this party's ledger"
PUT_BACK = (
    "{what}: it was put back from an older backup, and its budget may have begun again. Nothing was charged. Restore "
    "the newest backup of {home} (key and ledger), and have the run resumed. If there is none, run `tertulia ledger "
    "accept-loss {home}`, which records the loss in the ledger, and lower the budget by what was lost"
)
STRANGE = (
    "{who}: the heads held there of this party's ledger were made with another noise key. If this home was replaced "
    "since, lower its budget by what the earlier one has spent; if not, they are not true. Up to {most} members may "
    "lie, so nothing is refused"
)
HEADS = (AskChallenge, Challenges, HeldHeads, NewHeads)


class LedgerHeads:
    """One member's side of the exchange in one run."""

    def __init__(self, host: PartyHost, keys: MemberKeys, fingerprints: Mapping[PartyId, str]) -> None:
        self._host, self._keys, self._fingerprints = host, keys, fingerprints
        self._path = host.directory / FOLDER / "heads"  # which says how the last exchange ended
        self._own = b""  # this party's challenge, in memory only: a restored directory must not have an old one
        self._others: Array | None = None  # all members' challenges

    @property
    def _home(self) -> Path:
        return self._host.config.home_in(self._host.directory)

    @cached_property
    def _store(self) -> HeadStore:
        return HeadStore(self._home, durable=self._host.config.durable)

    def check_shown(self) -> None:
        """Raise `PolicyRefusal` unless the members' heads were compared with the ledger, which has all entries."""
        if not self._state:
            raise PolicyRefusal(RULE, NOT_SHOWN)
        if self._state != "shown":
            raise PolicyRefusal(OLDER_LEDGER, self._put_back(self._store.missing()))

    @property
    def _state(self) -> str:
        return self._path.read_text(encoding="utf-8") if self._path.exists() else ""

    def _set_state(self, state: str) -> None:
        if self._state != state:
            atomic_write(self._path, state.encode(), durable=self._host.config.durable)

    def exchange(self, message: Any) -> Any:
        """Answer a message about heads."""
        return _HANDLERS[type(message)](self, message)

    def _challenge(self, message: AskChallenge) -> Challenge:
        self._own, self._others = secrets.token_bytes(KEY_BYTES), None
        return Challenge(np.frombuffer(self._own, np.uint8))

    def _return_heads(self, message: Challenges) -> HeldHeads:
        """Give each member the heads that this party holds of its ledger."""
        self._others = checked_bytes(message.challenges, (len(self._keys.members), KEY_BYTES))
        held = {member: b"".join(self._store.held(self._fingerprints[member])) for member in self._keys.members}
        return HeldHeads(self._seal("held", held, HELD_BOX))

    def _accept_held(self, message: HeldHeads) -> NewHeads:
        """Compare the ledger with what the members hold of it; give them the present head, or refuse."""
        opened = self._open("held", message.boxes, HELD_BOX)
        if self._state != "shown" and len(opened) < len(self._keys.members) - 1:
            raise FormatError("the heads of all members are expected at the start of a run")
        returned = {
            member: [data[place : place + HEAD_BYTES] for place in range(0, len(data), HEAD_BYTES)]
            for member, data in opened.items()
        }
        self._check(returned)
        faults.point("party.before_heads")
        self._set_state("shown")
        head = seal_head(self._host.home)
        return NewHeads(self._seal("new", dict.fromkeys(self._keys.members, head), NEW_BOX))

    def _keep_new(self, message: NewHeads) -> Nothing:
        """Store the present heads of the members' ledgers."""
        opened = self._open("new", message.boxes, NEW_BOX)
        self._store.keep({self._fingerprints[member]: head for member, head in opened.items()})
        faults.point("party.after_heads")
        return Nothing()

    def _check(self, returned: Mapping[PartyId, Sequence[bytes]]) -> None:
        found, most = compare(self._host.home, returned), colluding(len(self._keys.members))
        missing = found.missing
        if len(found.strange) > most:
            missing = (*missing, Missing(None, found.strange))
        elif found.strange:
            self._host.notice(STRANGE.format(who=", ".join(found.strange), most=most))
        self._store.note_missing(missing)
        if missing:
            self._set_state("put back")
            raise PolicyRefusal(OLDER_LEDGER, self._put_back(missing))

    def _put_back(self, missing: Sequence[Missing]) -> str:
        return PUT_BACK.format(what="; ".join(one.text for one in missing), home=self._home)

    def _seal(self, kind: str, contents: Mapping[PartyId, bytes], size: int) -> U8:
        """Make a box for each other member that is there; a random salt in its key allows no two boxes with one key."""
        if self._others is None:
            raise FormatError("challenges come before heads")
        boxes = np.zeros((len(self._keys.members), size), np.uint8)
        for v, member in enumerate(self._keys.members):
            if v != self._keys.own and self._others[v].any():
                salt = secrets.token_bytes(HEAD_SALT)
                key = self._key(kind, self._keys.member, member, self._others[v].tobytes() + salt)
                boxes[v] = np.frombuffer(salt + seal(key, contents[member], self._about), np.uint8)
        return boxes

    def _open(self, kind: str, boxes: Array, size: int) -> dict[PartyId, bytes]:
        """Open the boxes of all members that are there."""
        if not self._own:
            raise FormatError("a challenge comes before heads")
        rows = checked_bytes(boxes, (len(self._keys.members), size))
        opened = {}
        for v, (member, row) in enumerate(zip(self._keys.members, rows, strict=True)):
            if v != self._keys.own and row.any():
                box = row.tobytes()
                key = self._key(kind, member, self._keys.member, self._own + box[:HEAD_SALT])
                opened[member] = unseal(key, box[HEAD_SALT:], self._about)
        return opened

    @property
    def _about(self) -> bytes:
        return bytes.fromhex(self._keys.keys_hash)

    def _key(self, kind: str, sender: PartyId, recipient: PartyId, fresh: bytes) -> bytes:
        other = recipient if sender == self._keys.member else sender
        pair = self._keys.pairs[self._keys.members.index(other)]
        return derive(pair, "heads", kind, sender, recipient, fresh)


_HANDLERS: dict[type, Callable[[LedgerHeads, Any], Any]] = {
    AskChallenge: LedgerHeads._challenge,
    Challenges: LedgerHeads._return_heads,
    HeldHeads: LedgerHeads._accept_held,
    NewHeads: LedgerHeads._keep_new,
}
