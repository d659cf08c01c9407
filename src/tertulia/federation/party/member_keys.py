"""A party's half of the agreement on keys: its own keys of a run, the members' cards, and the secrets that these give.

The members agree once per run. What was agreed is stored before anything leaves, and other keys are refused later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import U8, Array
from tertulia._disk import atomic_write, private_directory, read_checked, with_checksum
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.codec import decode, encode
from tertulia.federation.secure.keys import (
    CIPHERTEXT_BYTES,
    KEY_BYTES,
    TAG_BYTES,
    Card,
    RunKeys,
    Sign,
    box_key,
    check_cards,
    commitment_to,
    derive,
    encapsulate,
    hash_of_cards,
    members_key,
    seal,
    unseal,
)
from tertulia.federation.secure.messages import AllCards, AskCard, Boxes, Encapsulations, Ready
from tertulia.federation.types import PartyId

if TYPE_CHECKING:
    from tertulia.federation.plan import Plan

FOLDER = "secure"
NO_KEYS = "this party has no run keys: it has not approved a run with secure sums, or has lost its directory"
NOT_READY = "the members have not agreed on keys yet"
RULE = "secure"


def make_run_keys(
    directory: Path, member: PartyId, run: str, plan: str, roster_key: bytes, sign: Sign, *, durable: bool = True,
    start_words: Sequence[str] = (),
) -> None:  # fmt: skip
    """Make a member's keys of a run in its directory, signed by its roster key; existing keys stay.

    `start_words` are those of the model that the run continues, which all members have.
    """
    path = _keys_path(directory)
    if not path.exists():
        keys = RunKeys.new()
        card = keys.card(member, run, plan, roster_key, sign)
        private = {name: np.frombuffer(value, np.uint8) for name, value in dataclasses.asdict(keys).items()}
        private_directory(path.parent)
        stored = {"card": card, "words": tuple(start_words), **private}
        atomic_write(path, with_checksum(encode(stored)), durable=durable)


def _keys_path(directory: Path) -> Path:
    return directory / FOLDER / "keys.safetensors"


class MemberKeys:
    """The keys of one member in one run."""

    def __init__(self, directory: Path, member: PartyId, run: str, plan: Plan, *, durable: bool) -> None:
        self._directory, self._run, self._plan, self._durable = directory, run, plan, durable
        self._agreed_path = directory / FOLDER / "agreed.safetensors"
        self.member, self.members = member, plan.roster

    @cached_property
    def own(self) -> int:
        """The place of this member in the roster."""
        return self.members.index(self.member)

    @property
    def _n(self) -> int:
        return len(self.members)

    @cached_property
    def _stored(self) -> dict[str, Any]:
        if not _keys_path(self._directory).exists():
            raise PolicyRefusal(RULE, NO_KEYS)
        return dict(decode(read_checked(_keys_path(self._directory))))

    @cached_property
    def _keys(self) -> tuple[RunKeys, Card]:
        names = [field.name for field in dataclasses.fields(RunKeys)]
        return RunKeys(*(self._stored[name].tobytes() for name in names)), self._stored["card"]

    @cached_property
    def start_words(self) -> frozenset[str]:
        """The words of the model that the run continues."""
        return frozenset(self._stored["words"])

    @cached_property
    def _agreed(self) -> dict[str, Any]:
        """What was agreed so far: cards, own encapsulations, keys of pairs, the members' key."""
        return dict(decode(read_checked(self._agreed_path))) if self._agreed_path.exists() else {}

    def _keep(self, **facts: Any) -> None:
        agreed = self._agreed | facts
        private_directory(self._agreed_path.parent)
        atomic_write(self._agreed_path, with_checksum(encode(agreed)), durable=self._durable)
        self._agreed.update(facts)

    def exchange(self, message: Any) -> Any:
        """Answer a message by which members agree on keys; raise `FormatError` for any other."""
        handler = _HANDLERS.get(type(message))
        if handler is None:
            raise FormatError("this is no message of secure sums")
        return handler(self, message)

    def _show_card(self, message: AskCard) -> Card:
        return self._keys[1]

    def _accept_cards(self, message: AllCards) -> Encapsulations:
        """Check all cards, pin them, and encapsulate a secret for each member after this one."""
        check_cards(message.cards, self._run, self._plan.hash, dict(self._plan.keys))
        if message.cards[self.own].signed != self._keys[1].signed:
            raise PolicyRefusal(RULE, "the server shows other run keys of this party than it has made")
        cards = hash_of_cards(message.cards)
        if "cards" not in self._agreed:
            made = [encapsulate(card) for card in message.cards[self.own + 1 :]]
            before = self.own + 1
            self._keep(
                cards=message.cards,
                secrets=rows_of([s for s, _ in made], before, self._n, KEY_BYTES),
                ciphertexts=rows_of([c for _, c in made], before, self._n, CIPHERTEXT_BYTES),
            )
        elif hash_of_cards(self._agreed["cards"]) != cards:
            raise PolicyRefusal(RULE, "the server shows other run keys of the members than before")
        return Encapsulations(self._agreed["ciphertexts"])

    def _accept_secrets(self, message: Encapsulations) -> Boxes:
        """Derive the keys of all pairs, and send this member's string to all others."""
        cards = self._cards
        received = checked_bytes(message.ciphertexts, (self._n, CIPHERTEXT_BYTES))
        if "pairs" not in self._agreed:
            pairs = [self._pair(v, received) for v in range(self._n)]
            self._keep(pairs=rows_of(pairs, 0, self._n, KEY_BYTES))
        string, about = self._keys[0].string, bytes.fromhex(self.keys_hash)
        boxes = np.zeros((self._n, KEY_BYTES + TAG_BYTES), np.uint8)
        for v, card in enumerate(cards):
            if v != self.own:
                key = box_key(self.pairs[v], self.member, card.member, about)
                boxes[v] = np.frombuffer(seal(key, string, about), np.uint8)
        return Boxes(boxes)

    def _pair(self, v: int, received: Array) -> bytes:
        if v == self.own:
            return bytes(KEY_BYTES)
        keys, card = self._keys[0], self._cards[v]
        if v > self.own:
            secret, ciphertext = self._agreed["secrets"][v].tobytes(), self._agreed["ciphertexts"][v].tobytes()
        else:
            ciphertext = received[v].tobytes()
            secret = keys.open_encapsulation(ciphertext)
        return keys.pair_key(card, secret, ciphertext, self.keys_hash)

    def _accept_strings(self, message: Boxes) -> Ready:
        """Open all members' strings, check them against the commitments, and derive the members' key."""
        boxes, about = checked_bytes(message.boxes, (self._n, KEY_BYTES + TAG_BYTES)), bytes.fromhex(self.keys_hash)
        strings = []
        for v, card in enumerate(self._cards):
            string = self._keys[0].string
            if v != self.own:
                key = box_key(self.pairs[v], card.member, self.member, about)
                string = unseal(key, boxes[v].tobytes(), about)
            if commitment_to(card.member, string) != card.commitment.tobytes():
                raise FormatError("a member's string is not the one that it has committed to")
            strings.append(string)
        found = members_key(strings, self.keys_hash)
        if "members" not in self._agreed:
            self._keep(members=np.frombuffer(found, np.uint8))
        return Ready(np.frombuffer(derive(found, "ready"), np.uint8))

    @property
    def _cards(self) -> tuple[Card, ...]:
        if "cards" not in self._agreed:
            raise PolicyRefusal(RULE, NOT_READY)
        cards: tuple[Card, ...] = self._agreed["cards"]
        return cards

    @cached_property
    def keys_hash(self) -> str:
        """The hash of all members' cards."""
        return hash_of_cards(self._cards)

    @cached_property
    def pairs(self) -> list[bytes]:
        """The secrets that this member shares with each other one; zeros at its own place."""
        if "pairs" not in self._agreed:
            raise PolicyRefusal(RULE, NOT_READY)
        return [row.tobytes() for row in self._agreed["pairs"]]

    def members_key(self, purpose: str) -> bytes:
        """Derive a key that all members have and the server does not."""
        if "members" not in self._agreed:
            raise PolicyRefusal(RULE, NOT_READY)
        return derive(self._agreed["members"].tobytes(), "members", purpose)

    def sign(self, data: bytes) -> bytes:
        """Sign with this member's key of the run."""
        return self._keys[0].sign(data)

    def signers(self, data: bytes, signatures: Mapping[PartyId, Array]) -> list[PartyId]:
        """Return the members among these that have signed the data."""
        cards = {card.member: card for card in self._cards}
        return [m for m, s in signatures.items() if m in cards and cards[m].verify(s.tobytes(), data)]

    def all_signed(self, data: bytes, signatures: Sequence[Array]) -> bool:
        """Tell whether all members have signed; signatures are in the roster's order."""
        return len(signatures) == self._n and all(
            card.verify(signature.tobytes(), data) for card, signature in zip(self._cards, signatures, strict=True)
        )


def rows_of(rows: Sequence[bytes], before: int, count: int, width: int) -> U8:
    """Return rows of bytes as an array [count, width], after `before` rows of zeros."""
    found = np.zeros((count, width), np.uint8)
    for place, row in enumerate(rows, before):
        found[place] = np.frombuffer(row, np.uint8)
    return found


def checked_bytes(array: Any, shape: tuple[int, ...]) -> Array:
    """Return an array of bytes; raise `FormatError` unless it has this shape."""
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or array.shape != shape:
        raise FormatError(f"bytes of shape {shape} are expected")
    return array


_HANDLERS: dict[type, Callable[[MemberKeys, Any], Any]] = {
    AskCard: MemberKeys._show_card,
    AllCards: MemberKeys._accept_cards,
    Encapsulations: MemberKeys._accept_secrets,
    Boxes: MemberKeys._accept_strings,
}
