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
from tertulia.federation.types import PartyId, Step

_KINDS = frozenset({"ok", "refused", "failed", "absent", "behind", "lacking"})
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
class QuestionToAll:
    """A question to several parties, against which their replies are checked."""

    verb: Verb
    step: Step
    messages: Mapping[PartyId, Any]
    most_documents: float = MOST_DOCUMENTS

    def judge(self, answers: Mapping[PartyId, Answer]) -> dict[PartyId, Answer]:
        """Mark invalid replies as failed."""
        judged = {party: self._judge_one(party, answer) for party, answer in answers.items()}
        if self.verb == "each":
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
            check_reply(answer.reply, self.step, self.messages[party], self.most_documents)
            if self.verb == "mean":
                check_weighted(answer.reply)
        except Exception as error:
            why = str(error) if isinstance(error, TertuliaError) else type(error).__name__
            return failed(f"its reply cannot be used: {why}")
        return answer


def _shapes(reply: Any) -> tuple[Any, ...]:
    return (type(reply).__name__, *(np.shape(getattr(reply, field.name)) for field in dataclasses.fields(reply)))
