"""Checks of questions at a party and of replies at the server, derived from the marks of fields (`federation.fields`).

A new message class needs no code for these checks. Conditions that marks cannot express go into a method `check()` of a
question, or `check_reply(question)` of a reply. These methods are called last.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel

from tertulia._arrays import Array
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.fields import (
    ANY,
    OWN,
    Between,
    Capped,
    Least,
    Numbers,
    PublicCount,
    Weight,
    WordList,
    bare,
    declared,
    field_with,
    is_message,
)
from tertulia.federation.types import Step, names_words, question_type
from tertulia.privacy.policy import Policy

MOST_DOCUMENTS = 10**9  # the largest number that a party may declare, unless the terms set a lower one
_LONGEST = 10_000  # characters of a word or a name
_MOST = 2.0**62
_LEAVES = frozenset({int, float, bool, str, type(None), np.ndarray})  # types without parts
# The largest entry of a reply by dtype kind: sums over many parties stay exact (integers) or finite (floats).
_LARGEST = {"i": 2.0**53, "u": 2.0**53, "f": 1e30, "b": 1.0}


def check_question(step: Step, message: Any, policy: Policy) -> None:
    """Raise unless the message has the type that the step takes, and all its values are within bounds."""
    if not is_message(message):
        raise FormatError("a question must carry a message")
    check = _Check(policy)
    check.value(step.__name__, message, question_type(step))
    check.cells()
    for part in parts(message):
        if callable(own := getattr(part, "check", None)):
            own()


def check_reply(
    reply: Any, step: Step, question: Any, most_documents: float = MOST_DOCUMENTS, *, masked: bool = False
) -> None:
    """Raise `FormatError` unless a reply has the step's type, fits the question, and holds numbers within bounds.

    Masked numbers look uniform, so only the shapes of a masked reply are checked.
    """
    kind = reply_type(step)
    if not dataclasses.is_dataclass(reply) or not isinstance(reply, kind):
        raise FormatError(f"a {type(reply).__name__} is no {kind.__name__}")
    check = _Check(None)
    check.bind(question)
    for name, hint in declared(type(reply)).items():
        value = getattr(reply, name)
        if not isinstance(value, np.ndarray | int | float):
            raise FormatError(f"field '{name}' is a {type(value).__name__}, not an array")
        check.reply_field(name, np.asarray(value), hint, None if masked else most_documents)
    own = getattr(reply, "check_reply", None)  # the method's own check
    if callable(own) and not masked:
        own(question)


def check_weighted(reply: Any) -> None:
    """Raise unless a reply to `mean` has a weight, which is one number."""
    name = field_with(type(reply), Weight)
    if name is None or np.shape(getattr(reply, name)) != ():
        raise FormatError("a reply to `mean` needs a weight, which is one number")


def parts(value: Any) -> Iterator[Any]:
    """Yield a message, then all messages and settings within it."""
    if isinstance(value, BaseModel):
        yield value
    elif is_message(value):
        yield value
        yield from _parts_of(getattr(value, field.name) for field in dataclasses.fields(value))
    elif isinstance(value, tuple) and not (value and isinstance(value[0], str)):
        yield from _parts_of(value)
    elif isinstance(value, dict):
        yield from _parts_of(value.values())


def _parts_of(values: Iterable[Any]) -> Iterator[Any]:
    for one in values:
        if type(one) not in _LEAVES:
            yield from parts(one)


def word_lists(message: Any) -> Iterator[tuple[str, ...]]:
    """Yield the word lists within a message: marked fields, or marked properties where words are stored as bytes."""
    for part in parts(message):
        kind: Any = type(part)
        name = None if isinstance(part, BaseModel) else field_with(kind, WordList) or _marked_property(kind)
        if name is not None:
            yield getattr(part, name)


@lru_cache(maxsize=256)
def _marked_property(kind: type) -> str | None:
    for name, value in vars(kind).items():
        getter = value.fget if isinstance(value, property) else None
        if getter is not None and WordList() in bare(get_type_hints(getter, include_extras=True).get("return"))[1]:
            return name
    return None


def are_words(value: tuple[Any, ...]) -> bool:
    """Tell whether all entries are strings. It must be fast: lists are long, and every question has one."""
    return set(map(type, value)) <= {str}


class _Check:
    """The check of one message, with the lengths of axes found so far. A party has a policy, the server has none."""

    def __init__(self, policy: Policy | None) -> None:
        self.policy = policy
        self.sizes: dict[str, int] = {}

    def bind(self, question: Any) -> None:
        """Copy the lengths of a question's axes. The server made the question, so nothing else is checked."""
        for part in parts(question):
            for name, hint in {} if isinstance(part, BaseModel) else declared(type(part)).items():
                value = getattr(part, name)
                for rule in _rules(hint):
                    if isinstance(rule, WordList):
                        self.sizes["V"] = len(value)
                    elif isinstance(rule, Numbers) and rule.axes != ANY and isinstance(value, np.ndarray):
                        axes = zip(rule.axes, value.shape, strict=True)
                        self.sizes |= {axis: size for axis, size in axes if _named(axis) and not axis.endswith(OWN)}

    def reply_field(self, name: str, x: Array, hint: Any, most_documents: float | None) -> None:
        """Check one field of a reply; without `most_documents`, check only its shape."""
        if x.dtype.kind not in _LARGEST:
            raise FormatError(f"field '{name}' holds no numbers, but {x.dtype}")
        rules = _rules(hint)
        public = any(isinstance(rule, PublicCount) for rule in rules)
        if public and x.shape != () and not any(isinstance(rule, Numbers) for rule in rules):
            raise FormatError(f"field '{name}' must be one number")
        for rule in rules:
            if isinstance(rule, Numbers):
                self._array(name, x, rule, masked=most_documents is None)
        if not x.size or most_documents is None:
            return
        most = _LARGEST[x.dtype.kind]
        low, high = (0.0, float(most_documents)) if public else (-most, most)
        smallest, largest = float(x.min()), float(x.max())
        if not (low <= smallest and largest <= high):  # NaN fails this test, too
            raise FormatError(
                f"field '{name}' runs from {smallest:g} to {largest:g}: from {low:g} to {high:g} is possible"
            )

    def value(self, name: str, value: Any, hint: Any) -> None:
        """Check a value, and all values within it, against its annotation."""
        kind, rules = bare(hint)
        if _outer(kind) in (Union, types.UnionType):
            options = get_args(kind)
            if value is None and type(None) in options:
                return
            fitting = [option for option in options if option is not type(None) and _fits(value, bare(option)[0])]
            if not fitting:
                raise FormatError(f"'{name}' is of a kind that it may not be")
            self.value(name, value, fitting[0])
            return
        if not _fits(value, kind):
            raise FormatError(f"'{name}' is of a kind that it may not be")
        if any(isinstance(rule, WordList) for rule in rules):
            self._words(name, value)
        else:
            self._content(name, value, kind)
        for rule in rules:
            if isinstance(rule, Numbers):
                self._array(name, value, rule)
            elif isinstance(rule, Between | Least | Capped) and value is not None:
                for one in value if isinstance(value, tuple) else (value,):
                    self._bound(name, one, rule)

    def cells(self) -> None:
        """Check that a model of this size fits the party's memory."""
        topics = max((size for axis, size in self.sizes.items() if axis.startswith("K")), default=0)
        self._cap("topics", topics, "max_topics")
        self._cap("topics x words", topics * self.sizes.get("V", 0), "max_cells")

    def _content(self, name: str, value: Any, kind: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise FormatError(f"'{name}' must hold numbers")
            if value.dtype.kind == "f" and not _finite(value):
                raise FormatError(f"'{name}' must hold finite numbers")
        elif isinstance(value, BaseModel) or is_message(value):
            self._fields(value)
        elif isinstance(value, tuple):
            self._tuple(name, value, kind)
        elif isinstance(value, dict):
            of = (get_args(kind) or (str, Any))[1]
            for key, one in value.items():
                self.value(str(key), one, of)
        elif isinstance(value, str):
            if len(value) > _LONGEST:
                raise FormatError(f"'{name}' is too long")
        elif value is not None:
            self._number(name, value)

    def _fields(self, message: Any) -> None:
        for name, hint in declared(type(message)).items():
            self.value(name, getattr(message, name), hint)

    def _words(self, name: str, words: Any) -> None:
        if not isinstance(words, tuple) or not are_words(words) or max(map(len, words), default=0) > _LONGEST:
            raise FormatError(f"'{name}' must be words")
        if len(set(words)) != len(words):
            raise FormatError(f"'{name}' must be unique")
        self._cap(name, len(words), "max_words")
        self._same("V", len(words), name)

    def _tuple(self, name: str, value: tuple[Any, ...], kind: Any) -> None:
        self._cap(name, len(value), "max_words")
        of = get_args(kind)
        one_kind = of[0] if len(of) == 2 and of[1] is Ellipsis else Any
        for one in value:
            self.value(name, one, one_kind)

    def _number(self, name: str, value: float) -> None:
        if not isinstance(value, bool) and not (math.isfinite(value) and abs(value) < _MOST):
            raise FormatError(f"'{name}' must be a finite number")

    def _bound(self, name: str, value: Any, rule: Between | Least | Capped) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        if isinstance(rule, Capped):
            self._cap(name, value, rule.cap)
            if rule.axis:
                axis = f"{rule.axis} of settings"
                self.sizes[axis] = max(int(value), self.sizes.get(axis, 0))
        elif isinstance(rule, Least) and value < rule.least:
            raise FormatError(f"'{name}' must be at least {rule.least:g}")
        elif isinstance(rule, Between) and not rule.least <= value <= rule.most:
            raise FormatError(f"'{name}' must be from {rule.least:g} to {rule.most:g}")

    def _array(self, name: str, x: Array, rule: Numbers, *, masked: bool = False) -> None:
        free = rule.axes == ANY
        if (x.dtype.kind not in rule.kinds and not masked) or (x.ndim != len(rule.axes) and not free):
            raise FormatError(f"'{name}' must have the axes {rule.axes} and numbers of kind '{rule.kinds}'")
        for axis, size in () if free else zip(rule.axes, x.shape, strict=True):
            if axis.isdigit() and size != int(axis):
                raise FormatError(f"'{name}' must have the axes {rule.axes}")
            if size == 0 and rule.optional and axis == rule.axes[0]:
                continue
            if axis.startswith("K") and size == 0:
                raise FormatError(f"'{name}' has no topic")
            if _named(axis):
                self._same(axis, size, name)
        bounded = (rule.least > -math.inf or rule.most < math.inf) and not masked
        # As 64-bit numbers: NumPy rounds a bound to the array's own type, and 1e-20 is 0 in 16 bits.
        if bounded and x.size and (float(x.min()) < rule.least or float(x.max()) > rule.most):
            raise FormatError(f"'{name}' must hold numbers from {rule.least:g} to {rule.most:g}")

    def _same(self, axis: str, size: int, name: str) -> None:
        if self.sizes.setdefault(axis, size) != size:
            raise FormatError(f"'{name}' does not fit the rest of its message: axis {axis} has two lengths")

    def _cap(self, name: str, value: float, cap: str) -> None:
        most = math.inf if self.policy is None else getattr(self.policy, cap)
        if value > most:
            raise PolicyRefusal(cap, f"{name} = {value:.4g} is above this party's {most:,}")


def _named(axis: str) -> bool:
    return axis != "*" and not axis.isdigit()


def _rules(hint: Any) -> tuple[Any, ...]:
    """Return the marks of an annotation and of the members of a union."""
    kind, rules = bare(hint)
    if _outer(kind) in (Union, types.UnionType):
        return (*rules, *(rule for option in get_args(kind) for rule in bare(option)[1]))
    return rules


def _finite(x: Array) -> bool:
    """Tell whether all numbers are finite. A finite sum proves it fast; an overflowing one does not disprove it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum()) or np.isfinite(x).all())


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value has a type; its contents are checked later.

    This is stricter than `_kinds.fits`, which the codec uses: that accepts a 0-d array as a number and a number as an
    array. Here such an array would escape the caps, and such a number has no axes to check.
    """
    kind = _outer(kind)
    if kind in (Any, object) or isinstance(kind, str):
        return True
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if not isinstance(kind, type):  # for example a Literal, which pydantic has checked
        return True
    return isinstance(value, kind)


@lru_cache(maxsize=1024)
def _outer(kind: Any) -> Any:
    """Return `tuple` for `tuple[int, ...]`, and a plain type unchanged."""
    return get_origin(kind) or kind


def hides_replies(step: Step) -> bool:
    """Tell whether `each` may ask for a step beside secure sums: its replies are empty, or name agreed words."""
    kind = reply_type(step)
    return names_words(step) or (dataclasses.is_dataclass(kind) and not dataclasses.fields(kind))


@lru_cache(maxsize=256)
def reply_type(step: Step) -> type:
    """Return the annotated class of a step's replies; `object` without an annotation."""
    returned = get_args(get_type_hints(step).get("return"))
    return returned[1] if len(returned) == 2 and isinstance(returned[1], type) else object
