"""What a party may answer. Nothing that it sends may end more than its own part in the run.

An answer that cannot be read, or that cannot be the reply to what was asked, becomes a failed one: the party is then
treated as one whose step has failed, by the rules that the parties have agreed on (`on_failure`).
"""

from __future__ import annotations

import dataclasses
import typing
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._plain import plain
from tertulia.errors import FormatError, TertuliaError
from tertulia.federation.codec import decode
from tertulia.federation.messages import Answer, Verb
from tertulia.federation.packing import unpack
from tertulia.federation.types import PartyId, Step

MOST_DOCUMENTS = 10**9  # that a party may say it has, unless the terms say less
_KINDS = frozenset({"ok", "refused", "failed", "absent", "behind", "lacking"})
_PUBLIC = ("weight", "documents", "users")  # fields that count documents or users, and by which replies are weighed
_LARGEST = {
    "i": 2.0**53,
    "u": 2.0**53,
    "f": 1e30,
    "b": 1.0,
}  # of each kind of number; sums of many stay exact, or finite
_MOST_TEXT = 2000  # characters of a reason


def read_answer(data: bytes) -> Answer:
    """Whatever the bytes are, an answer."""
    try:
        answer = decode(unpack(data))
        if not isinstance(answer, Answer) or answer.kind not in _KINDS:
            raise FormatError("it is no answer")
    except Exception as error:
        why = str(error) if isinstance(error, TertuliaError) else type(error).__name__
        return failed(f"its answer of {len(data)} bytes cannot be read: {why}")
    return dataclasses.replace(answer, text=plain(answer.text, _MOST_TEXT))


def failed(why: str) -> Answer:
    """What stands for an answer that does not count."""
    return Answer("failed", plain(why, _MOST_TEXT), None)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question to several parties, by which their replies are judged."""

    verb: Verb
    step: Step
    messages: Mapping[PartyId, Any]
    most_documents: float = MOST_DOCUMENTS

    def judge(self, answers: Mapping[PartyId, Answer]) -> dict[PartyId, Answer]:
        """The same answers, but for those whose replies cannot be: they have failed."""
        judged = {party: self._judge_one(party, answer) for party, answer in answers.items()}
        if self.verb == "each":
            return judged
        # What is added up has one shape. Who stands alone with another is wrong; of two that differ, the second.
        shapes = {party: _shapes(answer.reply) for party, answer in judged.items() if answer.kind == "ok"}
        usual = Counter(shapes.values()).most_common(1)[0][0] if shapes else None
        odd = {p: failed(f"its reply {s} cannot be added to {usual}") for p, s in shapes.items() if s != usual}
        return judged | odd

    def _judge_one(self, party: PartyId, answer: Answer) -> Answer:
        if answer.kind != "ok":
            return answer
        try:
            check_reply(answer.reply, self.verb, self.step, self.most_documents)
            check = getattr(answer.reply, "check_reply", None)  # what the method knows about its own replies
            if check is not None:
                check(self.messages[party])
        except Exception as error:
            why = str(error) if isinstance(error, TertuliaError) else type(error).__name__
            return failed(f"its reply cannot be used: {why}")
        return answer


def check_reply(reply: Any, verb: Verb, step: Step, most_documents: float = MOST_DOCUMENTS) -> None:
    """Raise `FormatError` unless it is the step's kind of reply, of numbers that are finite and not absurd."""
    kind = reply_type(step)
    if not dataclasses.is_dataclass(reply) or not isinstance(reply, kind):
        raise FormatError(f"a {type(reply).__name__} is no {kind.__name__}")
    fields = {field.name: getattr(reply, field.name) for field in dataclasses.fields(reply)}
    for name, value in fields.items():
        if not isinstance(value, np.ndarray | int | float):
            raise FormatError(f"field '{name}' is a {type(value).__name__}, not an array")
        _check_numbers(name, np.asarray(value), most_documents)
    if verb == "mean":
        weight = fields.get("weight")
        if weight is None or np.shape(weight) != ():
            raise FormatError("a reply to `mean` needs a weight, which is one number")


def _check_numbers(name: str, value: Array, most_documents: float) -> None:
    kind = value.dtype.kind
    if kind not in _LARGEST:
        raise FormatError(f"field '{name}' holds no numbers, but {value.dtype}")
    if not value.size:
        return
    low, high = (-_LARGEST[kind], _LARGEST[kind]) if name not in _PUBLIC else (0.0, float(most_documents))
    least, most = float(value.min()), float(value.max())
    if not (low <= least and most <= high):  # false of NaN, too
        raise FormatError(f"field '{name}' runs from {least:g} to {most:g}: from {low:g} to {high:g} is possible")


@lru_cache(maxsize=256)
def reply_type(step: Step) -> type:
    """The class of a step's replies, by its annotation; `object` where it has none."""
    returned = typing.get_args(typing.get_type_hints(step).get("return"))
    return returned[1] if len(returned) == 2 and isinstance(returned[1], type) else object


def _shapes(reply: Any) -> tuple[Any, ...]:
    return (type(reply).__name__, *(np.shape(getattr(reply, field.name)) for field in dataclasses.fields(reply)))
