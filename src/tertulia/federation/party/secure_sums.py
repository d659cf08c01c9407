"""A party's half of masked sums: it masks its replies, signs one list per place, and gives shares for that list alone.

The server is not trusted with anything here. The party opens the boxes of other members itself, and counts signatures
itself. See `docs/secure.md` for the protocol.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import U8, Array
from tertulia.errors import FormatError, LostContribution, PolicyRefusal
from tertulia.federation import faults
from tertulia.federation.messages import BEFORE_ALL, Question
from tertulia.federation.party.member_keys import FOLDER, RULE, MemberKeys, checked_bytes, rows_of
from tertulia.federation.party.sum_records import Masked, SumRecords
from tertulia.federation.secure import shamir
from tertulia.federation.secure.keys import KEY_BYTES, box_key, derive, seal, unseal
from tertulia.federation.secure.lists import Label, SumList, body_hash, box_bytes, check_list, digest, threshold
from tertulia.federation.secure.masks import SEED_BYTES, add_masks, random_bytes, sign_of
from tertulia.federation.secure.messages import (
    ZERO_CELLS,
    ListedSum,
    ListSignature,
    MaskedReply,
    Shares,
    reply_digest,
)
from tertulia.federation.secure.rings import to_integers, to_ring, widths_of
from tertulia.federation.types import PartyId, Step, replies_of, step_name

if TYPE_CHECKING:
    from tertulia.federation.plan import Plan


class SecureSums:
    """One member's side of the masked sums of one run."""

    def __init__(self, directory: Path, keys: MemberKeys, plan: Plan, *, durable: bool) -> None:
        self._directory, self._keys, self._plan, self._durable = directory, keys, plan, durable
        self._members, self._n = plan.roster, len(plan.roster)
        self._opened: tuple[bytes, dict[PartyId, U8]] | None = None  # the last list, and the shares in its boxes

    @cached_property
    def records(self) -> SumRecords:
        """The durable record of this party's masked sums."""
        return SumRecords(self._directory / FOLDER / "sums.log", durable=self._durable)

    # --- masking ----------------------------------------------------------------------------------------------------

    def body_of(self, question: Question) -> str:
        """Return the hash of a question and of the widths that it asks for."""
        return body_hash(question.hash, question.widths)

    def check_question(self, question: Question, step: Step) -> None:
        """Refuse, before the step runs, a question whose masked answer must not be given."""
        body = self.body_of(question)
        self.records.check(question.place, body, question.attempt)
        self.records.check_repeat(question.place, body, question.counted)
        if replies_of(step) != "values":
            self.records.check_counted(step_name(step), question.counted)

    def mask(self, question: Question, step: Step, reply: Any) -> MaskedReply:
        """Mask a reply; raise `TooWide` if it does not fit the rings. The record is on disk before this returns."""
        body, name, standing = self.body_of(question), step_name(step), replies_of(step) == "standing"
        label = Label(self._keys.keys_hash, question.place, body, question.attempt)
        known = self.records.reply_or_none(question.place, body, question.attempt)
        integers = to_integers(reply)
        values = tuple(tuple(map(int, array.reshape(-1))) for array in integers) if standing else ()
        if standing and question.counted != BEFORE_ALL:
            integers = self._changes(integers, self.records.standing_or_none(name, question.counted))
        contents = _hash_of(integers)
        self.records.check_repeat(question.place, body, question.counted, contents)
        arrays = to_ring(integers, widths_of(type(reply), question.widths), self._n)
        root = secrets.token_bytes(KEY_BYTES) if known is None else known.root
        first = replies_of(step) != "values" and question.counted == BEFORE_ALL
        masked = self._masked(label, reply, arrays, root, first=first)
        found = masked.digest.tobytes().hex()
        if known is None:
            differs = replies_of(step) != "values"
            record = Masked(name, root, found, question.counted, differs, first, contents, values)
            self.records.add_reply(question.place, body, question.attempt, record)
        elif known.digest != found:
            raise FormatError("the stored answer to a masked question has changed: restore it from a backup")
        faults.point("party.after_mask")
        return masked

    @staticmethod
    def _changes(integers: list[Array], before: tuple[tuple[int, ...], ...] | None) -> list[Array]:
        """Subtract the numbers that are in the total already."""
        if before is None or [len(part) for part in before] != [array.size for array in integers]:
            raise LostContribution
        parts = [np.array(part, np.int64).reshape(array.shape) for part, array in zip(before, integers, strict=True)]
        return [array.astype(np.int64) - part for array, part in zip(integers, parts, strict=True)]

    def _masked(self, label: Label, reply: Any, arrays: list[Array], root: bytes, *, first: bool) -> MaskedReply:
        name = label.to_bytes()
        zeros = np.zeros(ZERO_CELLS, np.uint64)
        flat = [zeros, *(array.reshape(-1) for array in arrays)]
        seeds = self._seeds(name, root)
        own = self._keys.own
        add_masks(flat, ((seed, 1 if v == own else sign_of(own, v)) for v, seed in enumerate(seeds)))
        commitments = np.stack([np.frombuffer(hashlib.sha256(seed).digest(), np.uint8) for seed in seeds])
        names = [field.name for field in dataclasses.fields(reply)]
        values = dataclasses.replace(reply, **dict(zip(names, arrays, strict=True)))
        digest = reply_digest(name, arrays, zeros, commitments)
        boxes = self._boxes(name, seeds, root, digest, first=first)
        return MaskedReply(values, zeros, commitments, np.frombuffer(digest, np.uint8), boxes)

    def _seeds(self, label: bytes, root: bytes) -> list[bytes]:
        """Return the seed of each pair's mask; at this member's own place, the seed of its self-mask."""
        pairs = self._keys.pairs
        keys = [derive(pairs[v], "mask", label) for v in range(self._n)]
        keys[self._keys.own] = derive(root, "self")
        return [key[:SEED_BYTES] for key in keys]

    def _boxes(self, label: bytes, seeds: list[bytes], root: bytes, found: bytes, *, first: bool) -> U8:
        shares = shamir.share(*self._secrets(seeds, root), self._n)
        boxes = np.zeros((self._n, box_bytes(self._n)), np.uint8)
        for v, member in enumerate(self._members):
            if v != self._keys.own:
                content = shares[v].tobytes() + found + bytes([first])
                key = box_key(self._keys.pairs[v], self._keys.member, member, label)
                boxes[v] = np.frombuffer(seal(key, content, label), np.uint8)
        return boxes

    def _secrets(self, seeds: list[bytes], root: bytes) -> tuple[U8, U8]:
        """Return all seeds of a reply [n, 16], and the coefficients by which they are shared, from the root."""
        secret = np.stack([np.frombuffer(seed, np.uint8) for seed in seeds])
        shape = (threshold(self._n) - 1, *secret.shape)
        return secret, random_bytes(derive(root, "shares")[:SEED_BYTES], prod(shape)).reshape(shape)

    # --- lists and shares ---------------------------------------------------------------------------------------------

    def accept_list(self, message: ListedSum) -> ListSignature | Shares:
        """Sign a list, or give shares for it if enough members have signed it."""
        listed = message.listed(self._keys.keys_hash)
        check_list(listed, self._members, self._plan.min_summed, self._plan.groups)
        opened = self._open_boxes(listed, message.boxes)
        self.records.check_list(listed)
        if message.signatures:
            self._check_signatures(listed, message.signatures)
        self.records.sign(listed)
        faults.point("party.after_sign")
        if not message.signatures:
            return ListSignature(np.frombuffer(self._keys.sign(listed.to_bytes()), np.uint8))
        return self._give_shares(listed, opened)

    def _open_boxes(self, listed: SumList, boxes: Array) -> dict[PartyId, U8]:
        """Open the boxes of a list, or return what was found when the list was signed."""
        name = listed.to_bytes()
        if self._opened is None or self._opened[0] != name:
            self._opened = (name, self._open_all(listed, boxes))
        return self._opened[1]

    def _open_all(self, listed: SumList, boxes: Array) -> dict[PartyId, U8]:
        """Open the boxes of a list's survivors: the shares that this member holds of their seeds [n, 16] each.

        A box shows that its sender has answered this very question, with this digest.
        """
        label, opened, firsts = listed.label.to_bytes(), {}, 0
        rows = checked_bytes(boxes, (len(listed.survivors), box_bytes(self._n)))
        for (member, found), row in zip(listed.survivors.items(), rows, strict=True):
            if member == self._keys.member:
                shares, first = self._own_shares(listed, found)
            else:
                v = self._members.index(member)
                content = unseal(box_key(self._keys.pairs[v], member, self._keys.member, label), row.tobytes(), label)
                shares, first = np.frombuffer(content[: self._n * SEED_BYTES], np.uint8), bool(content[-1])
                if not hmac.compare_digest(content[self._n * SEED_BYTES : -1].hex(), found):
                    raise FormatError("a list names another reply than the one that its sender has made")
            opened[member] = shares.reshape(self._n, SEED_BYTES)
            firsts += first
        if 0 < firsts < self._plan.min_summed:
            raise PolicyRefusal(RULE, f"a list would add the first contributions of only {firsts} members")
        return opened

    def _own_shares(self, listed: SumList, found: str) -> tuple[U8, bool]:
        label = listed.label
        known = self.records.reply_or_none(label.place, label.body, label.attempt)
        if known is None or not hmac.compare_digest(known.digest, found):
            raise PolicyRefusal(RULE, "a list names a reply of this party that it has not given")
        seeds = self._seeds(label.to_bytes(), known.root)
        return shamir.share_of(*self._secrets(seeds, known.root), self._keys.own), known.first

    def _check_signatures(self, listed: SumList, signatures: Mapping[PartyId, Array]) -> None:
        needed = threshold(self._n)
        valid = self._keys.signers(listed.to_bytes(), signatures)
        if len(valid) < needed:
            raise PolicyRefusal(RULE, f"{len(valid)} members have signed a list, and {needed} must")

    def _give_shares(self, listed: SumList, opened: Mapping[PartyId, U8]) -> Shares:
        label = listed.label
        places = {member: v for v, member in enumerate(self._members)}
        absent = [v for member, v in places.items() if member not in listed.survivors]
        selves = np.stack([shares[places[member]] for member, shares in opened.items()])
        pairs = np.stack([shares[absent] for shares in opened.values()])
        own = np.zeros((0, SEED_BYTES), np.uint8)
        if self._keys.member in listed.survivors:
            known = self.records.reply_or_none(label.place, label.body, label.attempt)
            if known is not None:
                if known.differs:
                    self.records.count(known.step, label.place)
                seeds = self._seeds(label.to_bytes(), known.root)
                own = rows_of([seeds[v] for v in absent], 0, len(absent), SEED_BYTES)
        return Shares(selves, pairs.reshape(len(opened), len(absent), SEED_BYTES), own)


def _hash_of(integers: list[Array]) -> str:
    """Hash the numbers of a reply, whatever the width of their rings. The hash stays at the party."""
    return digest(*(array.astype(np.int64).tobytes() for array in integers)).hex()
