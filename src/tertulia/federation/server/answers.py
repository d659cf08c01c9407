"""Decode and check answers. A malformed answer cannot stop the server; it only counts as this party's failure.

An answer that cannot be decoded, or that does not fit its question, becomes a failed one. The server then treats the
party as one whose step has failed, by the rule that the parties have agreed on (`on_failure`).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tertulia._plain import plain
from tertulia.errors import FormatError, TertuliaError
from tertulia.federation.checks import MOST_DOCUMENTS, check_reply, check_weighted
from tertulia.federation.codec import decode
from tertulia.federation.messages import Answer, Verb
from tertulia.federation.packing import unpack
from tertulia.federation.secure.keys import KEY_BYTES
from tertulia.federation.secure.lists import box_bytes
from tertulia.federation.secure.messages import ZERO_CELLS, MaskedReply, NoteCommitment
from tertulia.federation.secure.rings import widths_of
from tertulia.federation.types import PartyId, Step

_KINDS = frozenset({"ok", "refused", "failed", "absent", "behind", "lacking", "wider"})
_MOST_TEXT = 2000  # characters of a reason


def read_answer(data: bytes) -> Answer:
    """Decode an answer; malformed bytes become a failed one."""
    try:
        answer = decode(unpack(data))
        if not isinstance(answer, Answer) or answer.kind not in _KINDS:
            raise FormatError("it is no answer")
    except Exception as error:
        why = str(error) if isinstance(error, TertuliaError) else type(error).__name__
        return failed(f"its answer of {len(data)} bytes cannot be read: {why}")
    return dataclasses.replace(answer, text=plain(answer.text, _MOST_TEXT))


def failed(why: str) -> Answer:
    """Return a failed answer, which replaces one that does not count."""
    return Answer("failed", plain(why, _MOST_TEXT), None)


@dataclasses.dataclass(frozen=True)
class Masking:
    """How the replies to a question are to be masked."""

    attempt: int
    widths: tuple[int, ...]
    members: int  # of the plan


@dataclasses.dataclass(frozen=True)
class QuestionToAll:
    """A question to several parties, against which their replies are checked."""

    verb: Verb
    step: Step
    messages: Mapping[PartyId, Any]
    most_documents: float = MOST_DOCUMENTS
    masking: Masking | None = None

    def judge(self, answers: Mapping[PartyId, Answer]) -> dict[PartyId, Answer]:
        """Mark invalid replies as failed."""
        judged = {party: self._judge_one(party, answer) for party, answer in answers.items()}
        if self.verb in ("each", "relay"):
            return judged
        # Replies that are added up must have the same shapes. The most frequent shapes are taken as right, the first
        # ones in a tie.
        shapes = {party: _shapes(answer.reply) for party, answer in judged.items() if answer.kind == "ok"}
        usual = Counter(shapes.values()).most_common(1)[0][0] if shapes else None
        odd = {p: failed(f"its reply {s} cannot be added to {usual}") for p, s in shapes.items() if s != usual}
        return judged | odd

    def _judge_one(self, party: PartyId, answer: Answer) -> Answer:
        if answer.kind != "ok":
            return answer
        try:
            reply = answer.reply
            if self.verb == "relay":
                return check_commitment(answer)
            if self.masking is not None:
                reply = check_masked(reply, self.masking)
            check_reply(reply, self.step, self.messages[party], self.most_documents, masked=self.masking is not None)
            if self.verb == "mean":
                check_weighted(reply)
        except Exception as error:
            why = str(error) if isinstance(error, TertuliaError) else type(error).__name__
            return failed(f"its reply cannot be used: {why}")
        return answer


def check_commitment(answer: Answer) -> Answer:
    """Return an answer that commits to a note; raise `FormatError` for any other."""
    found = answer.reply
    if not isinstance(found, NoteCommitment) or found.commitment.shape != (KEY_BYTES,):
        raise FormatError("a commitment to a note is expected")
    return answer


def check_masked(reply: Any, masking: Masking) -> Any:
    """Return the masked values of a reply; raise `FormatError` unless it has the form that was asked for."""
    if not isinstance(reply, MaskedReply) or not dataclasses.is_dataclass(reply.values):
        raise FormatError("a masked sum needs masked replies")
    n, arrays = masking.members, list(vars(reply.values).values())
    widths = widths_of(type(reply.values), masking.widths)
    fits = len(arrays) == len(widths) and all(
        isinstance(a, np.ndarray) and a.dtype == np.dtype(f"u{w // 8}") for a, w in zip(arrays, widths, strict=True)
    )
    parts = (
        (reply.zeros, np.uint64, (ZERO_CELLS,)),
        (reply.commitments, np.uint8, (n, KEY_BYTES)),
        (reply.digest, np.uint8, (KEY_BYTES,)),
        (reply.boxes, np.uint8, (n, box_bytes(n))),
    )
    if not fits or not all(isinstance(a, np.ndarray) and a.dtype == kind and a.shape == s for a, kind, s in parts):
        raise FormatError("a masked reply has another form")
    return reply.values


def _shapes(reply: Any) -> tuple[Any, ...]:
    reply = reply.values if isinstance(reply, MaskedReply) else reply
    return (type(reply).__name__, *(np.shape(getattr(reply, field.name)) for field in dataclasses.fields(reply)))
