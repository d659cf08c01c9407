"""A member's keys of one run, and the secrets that they give: one for each pair of members, and one for all.

Before a run, each member makes an X25519 key and an ML-KEM-768 key, by which pairs agree on secrets, and an Ed25519
key, by which it signs lists. Its roster key, whose fingerprint all members have approved with the plan, signs the
public halves together with the run and the plan: its *card*. The authority's signature alone counts for nothing here.

A pair's secret is derived from both exchanges, so traffic that is recorded today stays secret as long as one of the two
holds, also against a quantum computer. The members' key is derived from a random string of each member. A card commits
to the string, and the strings travel in boxes that the server cannot open.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from tertulia._arrays import U8, Array
from tertulia.errors import FormatError
from tertulia.federation.identity.keys import fingerprint_of, verify
from tertulia.federation.secure.lists import digest
from tertulia.federation.types import PartyId, message

KEY_BYTES = 32
CIPHERTEXT_BYTES = 1088  # of ML-KEM-768
TAG_BYTES = 16  # by which a box is longer than its contents
Sign = Callable[[bytes], bytes]


@message
class Card:
    """A member's public keys of a run, signed by its roster key."""

    member: str
    x25519: Array
    mlkem: Array
    ed25519: Array
    commitment: Array  # to the member's string
    roster_key: Array  # public, in DER
    signature: Array

    @property
    def signed(self) -> bytes:
        """The public keys, as the signature covers them."""
        keys = (self.x25519, self.mlkem, self.ed25519, self.commitment)
        return digest(self.member, *(key.tobytes() for key in keys))

    def check(self, run: str, plan: str, fingerprint: str) -> None:
        """Raise `FormatError` unless the member's roster key has signed this card for this run and plan."""
        try:
            if fingerprint_of(self.roster_key.tobytes()) != fingerprint:
                raise FormatError(f"the run keys of '{self.member}' are signed by a key that is not on the roster")
            verify(self.roster_key.tobytes(), self.signature.tobytes(), _statement(run, plan, self.signed))
            _ = x25519.X25519PublicKey.from_public_bytes(self.x25519.tobytes())
            _ = mlkem.MLKEM768PublicKey.from_public_bytes(self.mlkem.tobytes())
            _ = Ed25519PublicKey.from_public_bytes(self.ed25519.tobytes())
        except (InvalidSignature, ValueError, AttributeError, TypeError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"the run keys of '{self.member}' are not signed by its roster key") from None

    def verify(self, signature: bytes, data: bytes) -> bool:
        """Tell whether this member has signed the data."""
        try:
            Ed25519PublicKey.from_public_bytes(self.ed25519.tobytes()).verify(signature, data)
        except (InvalidSignature, ValueError):
            return False
        return True


def _statement(run: str, plan: str, keys: bytes) -> bytes:
    return b"tertulia run keys\0" + digest(run, plan, keys)


def check_cards(cards: Sequence[Card], run: str, plan: str, roster: dict[PartyId, str]) -> None:
    """Raise `FormatError` unless these are the cards of all members, in the roster's order."""
    if [card.member for card in cards] != list(roster):
        raise FormatError("run keys must be those of all members, in the order of the roster")
    for card in cards:
        card.check(run, plan, roster[card.member])


def hash_of_cards(cards: Sequence[Card]) -> str:
    """Hash all cards; the hash identifies the members of a masked sum."""
    return digest("tertulia cards", *(card.signed for card in cards)).hex()


@dataclass(frozen=True)
class RunKeys:
    """The private keys of a member for one run, and its string."""

    exchange: bytes  # X25519
    encapsulation: bytes  # ML-KEM-768, as its seed
    signing: bytes  # Ed25519
    string: bytes  # this member's part of the members' key

    @classmethod
    def new(cls) -> RunKeys:
        """Make keys."""
        return cls(
            x25519.X25519PrivateKey.generate().private_bytes_raw(),
            mlkem.MLKEM768PrivateKey.generate().private_bytes_raw(),
            Ed25519PrivateKey.generate().private_bytes_raw(),
            secrets.token_bytes(KEY_BYTES),
        )

    def card(self, member: PartyId, run: str, plan: str, roster_key: bytes, sign: Sign) -> Card:
        """Make the card; `sign` is the roster key's signature, `roster_key` its public half."""
        public = (
            x25519.X25519PrivateKey.from_private_bytes(self.exchange).public_key().public_bytes_raw(),
            self._mlkem.public_key().public_bytes_raw(),
            self._ed25519.public_key().public_bytes_raw(),
            commitment_to(member, self.string),
        )
        x25519_, mlkem_, ed25519_, commitment = map(_array, public)
        unsigned = Card(member, x25519_, mlkem_, ed25519_, commitment, _array(roster_key), _array(b""))
        return replace(unsigned, signature=_array(sign(_statement(run, plan, unsigned.signed))))

    @cached_property
    def _mlkem(self) -> mlkem.MLKEM768PrivateKey:
        return mlkem.MLKEM768PrivateKey.from_seed_bytes(self.encapsulation)

    @cached_property
    def _ed25519(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.signing)

    def sign(self, data: bytes) -> bytes:
        """Sign with the run's signing key."""
        return self._ed25519.sign(data)

    def open_encapsulation(self, ciphertext: bytes) -> bytes:
        """Return the secret that another member has encapsulated for this one."""
        try:
            return self._mlkem.decapsulate(ciphertext)
        except ValueError:
            raise FormatError("an encapsulated secret is malformed") from None

    def pair_key(self, card: Card, encapsulated: bytes, ciphertext: bytes, cards: str) -> bytes:
        """Derive the secret that this member shares with another one."""
        other = x25519.X25519PublicKey.from_public_bytes(card.x25519.tobytes())
        agreed = x25519.X25519PrivateKey.from_private_bytes(self.exchange).exchange(other)
        info = digest("tertulia pair", hashlib.sha256(ciphertext).digest())
        return HKDF(hashes.SHA256(), KEY_BYTES, salt=bytes.fromhex(cards), info=info).derive(agreed + encapsulated)


def encapsulate(card: Card) -> tuple[bytes, bytes]:
    """Make a secret for the holder of a card; return it with its ciphertext."""
    return mlkem.MLKEM768PublicKey.from_public_bytes(card.mlkem.tobytes()).encapsulate()


def commitment_to(member: PartyId, string: bytes) -> bytes:
    """Commit to a member's string."""
    return digest("tertulia commitment", member, string)


def members_key(strings: Sequence[bytes], cards: str) -> bytes:
    """Derive the key that all members share from all their strings."""
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=bytes.fromhex(cards), info=b"tertulia members").derive(
        b"".join(strings)
    )


def derive(key: bytes, *purpose: bytes | str) -> bytes:
    """Derive a key for one purpose (HKDF's second half)."""
    return HKDFExpand(hashes.SHA256(), KEY_BYTES, info=digest(*purpose)).derive(key)


def seal(key: bytes, data: bytes, about: bytes) -> bytes:
    """Encrypt and authenticate; each key seals one box only, so the nonce is constant."""
    return ChaCha20Poly1305(key).encrypt(bytes(12), data, about)


def unseal(key: bytes, box: bytes, about: bytes) -> bytes:
    """Open a box; raise `FormatError` if it was made with another key, or for another purpose."""
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), box, about)
    except InvalidTag:
        raise FormatError("a box cannot be opened: it is damaged, or made for another question") from None


def box_key(pair: bytes, sender: PartyId, recipient: PartyId, label: bytes) -> bytes:
    """Derive the key of the box that one member sends to another with one message."""
    return derive(pair, "box", sender, recipient, label)


def _array(data: bytes) -> U8:
    return np.frombuffer(data, np.uint8)
