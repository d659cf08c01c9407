"""The messages of secure sums, between a party's host and the server's handle. Methods do not see them.

A run begins with four exchanges by which members agree on keys (`secure.keys`). A masked sum has three: the reply, the
signature of the list of survivors, and the shares that unmask their total. Heads of ledgers take four: challenges, what
members hold of each other, the present heads, and that these are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError
from tertulia.federation.secure.keys import TAG_BYTES, Card
from tertulia.federation.secure.lists import Label, SumList, digest
from tertulia.federation.types import PartyId, Place, message
from tertulia.privacy.head_store import HEAD_BYTES, KEPT

HEAD_SALT = 32  # bytes before a sealed box of heads; they are part of its key
HELD_BOX = HEAD_SALT + KEPT * HEAD_BYTES + TAG_BYTES
NEW_BOX = HEAD_SALT + HEAD_BYTES + TAG_BYTES
ZERO_CELLS = 4  # cells that every party sets to zero: their total shows whether all masks cancel


# --- keys of a run ----------------------------------------------------------------------------------------------------


@message
class AskCard:
    """Ask a member for its card."""


@message
class AllCards:
    """All members' cards, in the roster's order."""

    cards: tuple[Card, ...]


@message
class Encapsulations:
    """Encapsulated secrets [n, 1088]: from one member to those after it, or from those before it to one member."""

    ciphertexts: Array


@message
class Boxes:
    """Boxes [n, b]: from one member to all, or from all to one member."""

    boxes: Array


@message
class Ready:
    """A member's proof that it has the members' key, which must be the same at all."""

    proof: Array


# --- a masked sum -----------------------------------------------------------------------------------------------------


@message
class MaskedReply:
    """A reply whose numbers are masked, and the means to unmask the total of a list that holds it."""

    values: Any  # the step's reply, with masked integers in all fields
    zeros: Array  # [ZERO_CELLS] masked zeros
    commitments: Array  # [n, 32] to the seed of the self-mask (at the member's own place), and to those of pairs
    digest: Array  # [32] `reply_digest`, which the sender's boxes hold, too
    boxes: Array  # [n, b] shares of these seeds, each box for one member


def reply_digest(label: bytes, values: Iterable[Array], zeros: Array, commitments: Array) -> bytes:
    """Hash what is masked, and the commitments; boxes are authenticated by themselves."""
    hashed = hashlib.sha256(digest("tertulia reply", label))
    for array in (*values, zeros, commitments):
        hashed.update(str((array.dtype.str, array.shape)).encode())
        hashed.update(array.reshape(-1).view(np.uint8).data)
    return hashed.digest()


@message
class ListedSum:
    """A list, the boxes that its survivors have made for the recipient, and once they are there, its signatures."""

    place: Place
    body: str
    attempt: int
    survivors: dict[str, str]  # member -> digest of its reply, in hex
    boxes: Array  # [survivors, b]; zeros in place of the recipient's own
    signatures: dict[str, Array]

    @classmethod
    def of(cls, listed: SumList, boxes: Array, signatures: dict[PartyId, Array] | None = None) -> ListedSum:
        """Make the message of a list."""
        label = listed.label
        return cls(label.place, label.body, label.attempt, listed.survivors, boxes, signatures or {})

    def listed(self, keys: str) -> SumList:
        """Return the list; `keys` is the hash of the members' cards that the reader has."""
        round_, ordinal = self.place
        if self.attempt < 0 or min(round_, ordinal) < 0:
            raise FormatError("a list names a place outside of any run")
        return SumList(Label(keys, (round_, ordinal), self.body, self.attempt), dict(self.survivors))


@message
class ListSignature:
    """A member's signature of a list."""

    signature: Array


@message
class Shares:
    """A member's shares of the seeds that unmask a list's total, and its own seeds with absent members."""

    of_selves: Array  # [survivors, 16] of each survivor's self-mask
    of_pairs: Array  # [survivors, absent, 16] of the masks that survivors share with absent members
    own_pairs: Array  # [absent, 16] the seeds themselves, if the member is a survivor; else [0, 16]


# --- notes among members ----------------------------------------------------------------------------------------------


@message
class NoteCommitment:
    """A member's commitment to its note."""

    commitment: Array


@message
class Committed:
    """All members' commitments [n, 32] to their notes at a place."""

    place: Place
    body: str
    commitments: Array


@message
class SealedNote:
    """A member's note, sealed with the members' key."""

    sealed: Array


@message
class SealedNotes:
    """All members' sealed notes."""

    place: Place
    body: str
    sealed: tuple[Array, ...]


@message
class SignedNotes:
    """All members' signatures of the notes at a place."""

    place: Place
    body: str
    signatures: tuple[Array, ...]


# --- heads of ledgers -------------------------------------------------------------------------------------------------


@message
class AskChallenge:
    """Ask a member for a challenge, with which the others seal what they send it."""


@message
class Challenge:
    """A member's challenge: random bytes, which make old boxes useless."""

    challenge: Array


@message
class Challenges:
    """All members' challenges [n, 32]; zeros for members that are absent."""

    challenges: Array


@message
class HeldHeads:
    """Boxes [n, b] with the heads that members hold of each other's ledgers, from one to all, or from all to one."""

    boxes: Array


@message
class NewHeads:
    """Boxes [n, b] with the present heads of members' ledgers, from one to all, or from all to one."""

    boxes: Array


def notes_hash(label: Label, commitments: Array) -> bytes:
    """Hash the commitments to all notes at a place: this is what members sign."""
    return digest("tertulia notes", label.to_bytes(), commitments.tobytes())
