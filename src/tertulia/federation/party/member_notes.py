"""A party's half of notes among members: it commits to its own, seals it, opens all, and signs what it has received."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._disk import atomic_write, private_directory, read_checked, with_checksum
from tertulia.errors import FormatError, Missed, PolicyRefusal
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import Question
from tertulia.federation.party.member_keys import FOLDER, RULE, MemberKeys
from tertulia.federation.secure.keys import KEY_BYTES, derive, seal, unseal
from tertulia.federation.secure.lists import Label, digest
from tertulia.federation.secure.messages import (
    Committed,
    ListSignature,
    NoteCommitment,
    SealedNote,
    SealedNotes,
    SignedNotes,
    notes_hash,
)
from tertulia.federation.types import Nothing, PartyId, Place, Step, step_name

_SHORTEST = 1 << 12  # bytes; notes are padded to a power of two, so that their length tells little
_LENGTH = 8  # bytes of a note's length


class MemberNotes:
    """The notes of one run, a file for each place."""

    def __init__(self, directory: Path, keys: MemberKeys, *, durable: bool) -> None:
        self._directory, self._keys, self._durable = directory / FOLDER, keys, durable

    def commit_to(self, question: Question, step: Step, note: Any) -> NoteCommitment:
        """Store this party's own note, and commit to it; a repeated question gets the same commitment."""
        known = self._find(question.place)
        if known is None:
            known = {"step": step_name(step), "body": question.hash, "salt": _bytes(secrets.token_bytes(KEY_BYTES))}
            known["note"] = _bytes(_padded(encode(note)))
            self._keep(question.place, known)
        self._check_body(known, question.hash)
        return NoteCommitment(_bytes(self._commitment(question.place, known)))

    def _commitment(self, place: Place, known: dict[str, Any]) -> bytes:
        label = self._label(place, known["body"])
        return _commitment(label, self._keys.member, known["salt"].tobytes(), known["note"])

    def reveal(self, message: Committed) -> SealedNote:
        """Seal this party's note, now that all members have committed to theirs."""
        known = self._known(message.place, message.body)
        own = self._keys.own
        shape = (len(self._keys.members), 32)
        if message.commitments.shape != shape or message.commitments.dtype != np.uint8:
            raise FormatError("commitments of all members are expected")
        if message.commitments[own].tobytes() != self._commitment(message.place, known):
            raise PolicyRefusal(RULE, "the server shows another commitment than this party has given")
        if "commitments" not in known:
            known["commitments"] = message.commitments
            self._keep(message.place, known)
        elif not np.array_equal(known["commitments"], message.commitments):
            raise PolicyRefusal(RULE, "the server shows other commitments than before")
        label = self._label(message.place, message.body)
        content = known["salt"].tobytes() + known["note"].tobytes()
        return SealedNote(_bytes(seal(self._key(self._keys.member, label), content, label.to_bytes())))

    def open_all(self, message: SealedNotes) -> ListSignature:
        """Open all notes, check them against the commitments, and sign that they are these."""
        known, members = self._known(message.place, message.body), self._keys.members
        if "commitments" not in known or len(message.sealed) != len(members):
            raise FormatError("notes of all members are expected, after their commitments")
        label, notes = self._label(message.place, message.body), {}
        for member, sealed, commitment in zip(members, message.sealed, known["commitments"], strict=True):
            content = unseal(self._key(member, label), sealed.tobytes(), label.to_bytes())
            salt, note = content[:KEY_BYTES], content[KEY_BYTES:]
            if not hmac.compare_digest(_commitment(label, member, salt, _bytes(note)), commitment.tobytes()):
                raise FormatError("a note is not the one that its sender has committed to")
            notes[member] = _bytes(note)
        if "notes" not in known:
            known["notes"] = notes
            self._keep(message.place, known)
        return ListSignature(_bytes(self._keys.sign(notes_hash(label, known["commitments"]))))

    def accept(self, message: SignedNotes) -> Nothing:
        """Accept the notes, if all members have signed that they have the same."""
        known = self._known(message.place, message.body)
        if "notes" not in known:
            raise FormatError("signatures come after the notes")
        data = notes_hash(self._label(message.place, message.body), known["commitments"])
        if not self._keys.all_signed(data, message.signatures):
            raise PolicyRefusal(RULE, "not all members have signed that they have received the same notes")
        if not known.get("agreed"):
            self._keep(message.place, known | {"agreed": True})
        return Nothing()

    def agreed(self, step: Step) -> dict[PartyId, Any]:
        """Return all members' notes of a step, the last that all have signed."""
        for path in sorted((self._directory / "notes").glob("*.safetensors"), reverse=True):
            known = decode(read_checked(path))
            if known["step"] == step_name(step) and known.get("agreed"):
                return {member: decode(_unpadded(note.tobytes())) for member, note in known["notes"].items()}
        raise Missed("the members have not exchanged their notes yet")

    def _known(self, place: Place, body: str) -> dict[str, Any]:
        round_, ordinal = place
        known = self._find((int(round_), int(ordinal)))
        if known is None:
            raise FormatError("this party has committed to no note at this place")
        self._check_body(known, body)
        return known

    @staticmethod
    def _check_body(known: dict[str, Any], body: str) -> None:
        if known["body"] != body:
            raise PolicyRefusal(RULE, "this party has committed to a note for another question at this place")

    def _label(self, place: Place, body: str) -> Label:
        return Label(self._keys.keys_hash, (int(place[0]), int(place[1])), body, 0)

    def _key(self, member: PartyId, label: Label) -> bytes:
        return derive(self._keys.members_key("notes"), member, label.to_bytes())

    def _path(self, place: Place) -> Path:
        return self._directory / "notes" / f"{place[0]:08d}-{place[1]:06d}.safetensors"

    def _find(self, place: Place) -> dict[str, Any] | None:
        path = self._path(place)
        return dict(decode(read_checked(path))) if path.exists() else None

    def _keep(self, place: Place, facts: dict[str, Any]) -> None:
        path = self._path(place)
        private_directory(path.parent)
        atomic_write(path, with_checksum(encode(facts)), durable=self._durable)


def _commitment(label: Label, member: PartyId, salt: bytes, note: Array) -> bytes:
    return digest("tertulia note", label.to_bytes(), member, salt, note.tobytes())


def _padded(note: bytes) -> bytes:
    size = max(_SHORTEST, 1 << (len(note) + _LENGTH - 1).bit_length())
    return len(note).to_bytes(_LENGTH, "little") + note + bytes(size - _LENGTH - len(note))


def _unpadded(data: bytes) -> bytes:
    return data[_LENGTH : _LENGTH + int.from_bytes(data[:_LENGTH], "little")]


def _bytes(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8)
