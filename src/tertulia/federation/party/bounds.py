"""Whether a message is what its class says: types, shapes, kinds and sizes of numbers, and caps of a party's policy.

The rules are made from the annotations of message classes (`federation.fields`), so a new message is checked as soon as
it is declared. What annotations cannot say, a message says in a method `check()`, which is called last.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel

from tertulia._arrays import Array
from tertulia.errors import FormatError, PolicyRefusal
from tertulia.federation.fields import Between, Numbers
from tertulia.federation.types import Step
from tertulia.privacy.policy import Policy

# The numbers that a policy caps, wherever a message has them.
CAPPED = {
    "topics": "max_topics",
    "sweeps": "max_sweeps", "more_sweeps": "max_sweeps", "local_steps": "max_sweeps", "epochs": "max_sweeps",
    "rounds": "max_rounds", "round": "max_rounds", "arrival_rounds": "max_rounds", "step": "max_rounds",
    "batches": "max_rounds", "attempt": "max_rounds",
}  # fmt: skip
LEAST = {"epsilon": 1e-3, "sigma": 1e-6, "delta": 1e-300}  # below these, noise takes memory without bound
_LONGEST = 10_000  # characters of a word or a name
_MOST = 2.0**62
_LEAVES = frozenset({int, float, bool, str, type(None), np.ndarray})  # what has no parts


def check_message(step: Step, message: Any, policy: Policy) -> None:
    """Raise unless the message is one that this step takes, and all that it holds is within bounds."""
    wanted = _takes(step)
    if not _is_message(message):
        raise FormatError("a question must carry a message")
    check = _Check(policy)
    check.value(step.__name__, message, wanted)
    check.cells()
    for part in parts(message):
        if callable(own := getattr(part, "check", None)):
            own()


def parts(value: Any) -> Iterator[Any]:
    """All messages within a message, itself first, and their settings."""
    if isinstance(value, BaseModel):
        yield value
    elif _is_message(value):
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
    """The word lists within a message."""
    for part in parts(message):
        words = None if isinstance(part, BaseModel) else getattr(part, "words", None)
        if isinstance(words, tuple):
            yield words


def are_words(value: tuple[Any, ...]) -> bool:
    """Whether all are texts; lists are long, and every question has one."""
    return set(map(type, value)) <= {str}


class _Check:
    """One message being checked: how long its axes are, and how many topics it speaks of."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.sizes: dict[str, int] = {}

    def value(self, name: str, value: Any, hint: Any) -> None:
        """Check a value against its annotation, and all within it."""
        kind, rules = _bare(hint)
        if _outer(kind) in (Union, types.UnionType):
            options = get_args(kind)
            if value is None and type(None) in options:
                return
            fitting = [option for option in options if option is not type(None) and _fits(value, _bare(option)[0])]
            if not fitting:
                raise FormatError(f"'{name}' is of a kind that it may not be")
            self.value(name, value, fitting[0])
            return
        if not _fits(value, kind):
            raise FormatError(f"'{name}' is of a kind that it may not be")
        self._content(name, value, kind)
        for rule in rules:
            if isinstance(rule, Numbers):
                self._array(name, value, rule)
            elif isinstance(rule, Between) and not rule.least <= value <= rule.most:
                raise FormatError(f"'{name}' must be from {rule.least:g} to {rule.most:g}")

    def cells(self) -> None:
        """Models of so many topics and words must fit the party's memory."""
        topics = max((size for axis, size in self.sizes.items() if axis.startswith("K")), default=0)
        self._cap("topics", topics, "max_topics")
        self._cap("topics x words", topics * self.sizes.get("V", 0), "max_cells")

    def _content(self, name: str, value: Any, kind: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise FormatError(f"'{name}' must hold numbers")
            if value.dtype.kind == "f" and not _finite(value):
                raise FormatError(f"'{name}' must hold finite numbers")
        elif isinstance(value, BaseModel) or _is_message(value):
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
        kind: Any = type(message)
        hints = _hints(kind)
        words = None if isinstance(message, BaseModel) else getattr(message, "words", None)
        if isinstance(words, tuple):
            self._cap("words", len(words), "max_words")
            self._same("V", len(words), "words")
        names = hints if isinstance(message, BaseModel) else [field.name for field in dataclasses.fields(message)]
        for name in names:
            self.value(name, getattr(message, name), hints.get(name, Any))

    def _tuple(self, name: str, value: tuple[Any, ...], kind: Any) -> None:
        if name == "words":
            if not are_words(value) or max(map(len, value), default=0) > _LONGEST:
                raise FormatError("'words' must be words")
            if len(set(value)) != len(value):
                raise FormatError("'words' must be unique")
            return
        self._cap(name, len(value), "max_words")
        of = get_args(kind)
        one_kind = of[0] if len(of) == 2 and of[1] is Ellipsis else Any
        for one in value:
            self.value(name, one, one_kind)

    def _number(self, name: str, value: float) -> None:
        if isinstance(value, bool):
            return
        if not (math.isfinite(value) and abs(value) < _MOST):
            raise FormatError(f"'{name}' must be a finite number")
        if name in CAPPED:
            self._cap(name, value, CAPPED[name])
            if name == "topics":
                self.sizes["K of settings"] = max(int(value), self.sizes.get("K of settings", 0))
        if value < LEAST.get(name, -math.inf):
            raise FormatError(f"'{name}' must be at least {LEAST[name]:g}")

    def _array(self, name: str, x: Array, rule: Numbers) -> None:
        if x.dtype.kind not in rule.kinds or x.ndim != len(rule.axes):
            raise FormatError(f"'{name}' must have the axes {rule.axes} and numbers of kind '{rule.kinds}'")
        for axis, size in zip(rule.axes, x.shape, strict=True):
            if axis.isdigit() and size != int(axis):
                raise FormatError(f"'{name}' must have the axes {rule.axes}")
            if axis.startswith("K") and size == 0:
                raise FormatError(f"'{name}' has no topic")
            if axis != "*" and not axis.isdigit():
                self._same(axis, size, name)
        bounded = rule.least > -math.inf or rule.most < math.inf
        if bounded and x.size and (x.min() < rule.least or x.max() > rule.most):
            raise FormatError(f"'{name}' must hold numbers from {rule.least:g} to {rule.most:g}")

    def _same(self, axis: str, size: int, name: str) -> None:
        if self.sizes.setdefault(axis, size) != size:
            raise FormatError(f"'{name}' does not fit the rest of its message: axis {axis} has two lengths")

    def _cap(self, name: str, value: float, cap: str) -> None:
        most = getattr(self.policy, cap)
        if value > most:
            raise PolicyRefusal(cap, f"{name} = {value:.4g} is above this party's {most:,}")


def _is_message(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


def _finite(x: Array) -> bool:
    """Whether all are finite. The sum shows it at a glance, unless it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(x.sum()) or np.isfinite(x).all())


@lru_cache(maxsize=1024)
def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """An annotation without its rules, and these."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind; what is inside is looked at later.

    Stricter than `_kinds.fits`, by which messages are read: that takes an array without axes for a number, and a number
    for an array. Here the first would be below no cap, and the second has no axes to check.
    """
    kind = _outer(kind)
    if kind in (Any, object) or isinstance(kind, str):
        return True
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if not isinstance(kind, type):  # a Literal, say, which pydantic has looked at
        return True
    return isinstance(value, kind)


@lru_cache(maxsize=1024)
def _outer(kind: Any) -> Any:
    """`tuple` of `tuple[int, ...]`; of a plain kind itself."""
    return get_origin(kind) or kind


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    if issubclass(kind, BaseModel):  # its types were checked when it was decoded; here are only its numbers
        return dict.fromkeys(kind.model_fields, Any)
    return get_type_hints(kind, include_extras=True)


@lru_cache(maxsize=256)
def _takes(step: Step) -> Any:
    """The kind of message that a step takes, if it says so."""
    names = list(inspect.signature(step).parameters)
    return get_type_hints(step).get(names[2], Any) if len(names) > 2 else Any
