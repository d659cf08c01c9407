"""Marks: annotations that declare the meaning and the bounds of fields in questions and replies.

A field carries its mark in its annotation (`round: Round`, where `Round = Annotated[int, Capped("max_rounds")]`). The
party's door, the server, the codec and the generated pages read marks; no code recognises a field by its name. Every
integer in a question needs a mark that bounds it, and every field a type that the checks can look into: not `Any`,
`object` or a bare `dict`. Otherwise `@step` raises an error at import.

Axes of the same name have the same length throughout a question and its reply. `V` is the number of words.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import BaseModel

from tertulia._arrays import Array

ANY = ("...",)  # of an array whose shape a method checks itself
OWN = "_p"  # ends the name of an axis whose length is the party's own choice: a reply need not have the question's
EPSILON = "epsilon"  # the name of a party's own epsilon among its choices, for every method
MOST_COUNT = 2**30  # kernels count in 32 bits, and need room for a party's own tokens
LEAST_PRIOR, MOST_PRIOR = 1e-20, 1e9  # limits of the kernels: beyond them float32 gives 0 or infinity


@dataclass(frozen=True)
class Numbers:
    """An array: the names of its axes, the kinds of its dtype (NumPy's letters), and the bounds of its entries.

    A digit in place of a name is a fixed length; "*" allows any length; ("...",) allows any axes. The first axis of an
    `optional` array may have length 0. A masked sum treats entries as integers in units of 2^-scale, at first modulo
    2^ring (`secure.rings`).
    """

    axes: tuple[str, ...]
    kinds: str = "f"
    least: float = -math.inf
    most: float = math.inf
    optional: bool = False
    ring: int = 32
    scale: int = 0


@dataclass(frozen=True)
class Between:
    """A number's bounds."""

    least: float
    most: float


@dataclass(frozen=True)
class Least:
    """A number's lower bound. Smaller numbers would make noise that needs unbounded memory."""

    least: float


@dataclass(frozen=True)
class Capped:
    """An integer that the party's policy caps; `cap` is the policy's key. It may also be the length of an `axis`."""

    cap: str
    axis: str = ""


@dataclass(frozen=True)
class Uncapped:
    """An integer that needs no cap, with the reason."""

    why: str


@dataclass(frozen=True)
class OneOf:
    """A setting that must equal one of the named settings of the agreed plan; "vocabulary.delta" is in a section."""

    settings: tuple[str, ...]


@dataclass(frozen=True)
class WordList:
    """The agreed words, whose number is the length of axis `V`. A long list is sent once, then its fingerprint."""


@dataclass(frozen=True)
class PublicCount:
    """A number of documents or users in a reply, which the party declares public."""


@dataclass(frozen=True)
class Weight(PublicCount):
    """The number by which a reply to `mean` is weighted."""


# --- questions --------------------------------------------------------------------------------------------------------
Words = Annotated[tuple[str, ...], WordList()]
Round = Annotated[int, Capped("max_rounds")]
RoundList = Annotated[tuple[int, ...], Capped("max_rounds")]
Seed = Annotated[int, Uncapped("a key")]
SweepCount = Annotated[int, Capped("max_sweeps")]
Counts = Annotated[Array, Numbers(("K", "V"), "iuf", 0, MOST_COUNT)]
NoisyCounts = Annotated[Array, Numbers(("K", "V"), "iuf", -MOST_COUNT, MOST_COUNT)]
TopicWord = Annotated[Array, Numbers(("K", "V"), "f", 0, MOST_COUNT)]
OwnTopics = Annotated[Array, Numbers(("K_p", "V"), "f", 0, MOST_COUNT)]  # K_p: the party's own number of topics
Prior = Annotated[Array, Numbers(("K",), "f", LEAST_PRIOR, MOST_PRIOR)]
Flat = Annotated[Array, Numbers(("n",), "f")]
Pairs = Annotated[Array, Numbers(("2", "*"), "f")]
Bytes = Annotated[Array, Numbers(("bytes",), "u")]
Offsets = Annotated[Array, Numbers(("*",), "i", 0)]
Places = Annotated[Array, Numbers(("*",), "iu", 0, MOST_COUNT)]
Fraction = Annotated[float, Between(0, 1)]

# --- replies ----------------------------------------------------------------------------------------------------------
CountChange = Annotated[Array, Numbers(("K", "V"), "iu")]  # new counts minus those of this party in the sum
SweptChange = Annotated[Array, Numbers(("K", "V"), "iu", optional=True)]
HistogramChange = Annotated[Array, Numbers(("K", "columns"), "iu")]
LengthChange = Annotated[Array, Numbers(("columns",), "iu")]
RealCounts = Annotated[Array, Numbers(("K", "V"), "iuf", ring=64, scale=20)]
OwnSizes = Annotated[Array, Numbers(("K_p",), "iuf", 0)]
Scalar = Annotated[Array, Numbers((), "iuf", ring=64)]
Total = Annotated[Array, Numbers((), "iuf", 0, ring=64)]
DocumentCount = Annotated[Array, PublicCount()]
TwoCounts = Annotated[Array, PublicCount(), Numbers(("2",), "iu")]  # of documents
Moments = Annotated[Array, Numbers(("3",), "iu", 0)]  # a number, its square, and 1
ReplyWeight = Annotated[Array, Weight()]
Cells = Annotated[Array, Numbers(("*", "*"), "iu", ring=64)]
Gradient = Annotated[Array, Numbers(ANY, "f", scale=14)]  # of a sum over documents: steps of 6e-5
Statistic = Annotated[Array, Numbers(ANY, "f", ring=64)]
SumTag = Annotated[Array, Numbers(("2",), "iu", ring=64)]  # by which members recognise a total (`secure.sum_tags`)
NoisySum = Annotated[Array, Numbers(("n",), "iu")]  # on a grid, with noise


def is_message(value: Any) -> bool:
    """Tell whether a value is a message: a dataclass, not the class itself."""
    return hasattr(type(value), "__dataclass_fields__")


def declared(kind: Any) -> Mapping[str, Any]:
    """Return the annotation, with its marks, of each field of a message or of settings.

    For settings only marks are returned, because pydantic checked the types when it decoded them.
    """
    return _declared(kind)


@lru_cache(maxsize=512)
def _declared(kind: Any) -> Mapping[str, Any]:
    if issubclass(kind, BaseModel):
        return {name: _marked(field.metadata) for name, field in kind.model_fields.items()}
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(kind)}


def _marked(metadata: list[Any]) -> Any:
    marks = tuple(one for one in metadata if isinstance(one, Between | Least | Capped | Uncapped | OneOf))
    return Annotated[(Any, *marks)] if marks else Any


@lru_cache(maxsize=1024)
def bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split an annotation into its type and its marks."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def field_with(kind: Any, mark: type) -> str | None:
    """Return the name of the field of a message or of settings that has this mark, None if no field has it."""
    return _field_with(kind, mark)


@lru_cache(maxsize=512)
def _field_with(kind: type, mark: type) -> str | None:
    return next((name for name, hint in declared(kind).items() if has(hint, mark)), None)


def has(hint: Any, mark: type | tuple[type, ...]) -> bool:
    """Tell whether an annotation, or a type argument within it, has a mark of this class."""
    kind, marks = bare(hint)
    return any(isinstance(one, mark) for one in marks) or any(has(option, mark) for option in _options(kind))


def _options(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType, tuple, list, dict) else ()


def capped(settings: BaseModel) -> Iterator[tuple[str, int, str]]:
    """Yield the settings that a policy caps: name, value and the policy's key."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from capped(value)
        for mark in field.metadata:
            if isinstance(mark, Capped) and isinstance(value, int):
                yield name, value, mark.cap


def unbounded(kind: Any) -> Iterator[str]:
    """Yield the names of integer fields, of a message and of all messages within it, that no mark bounds."""
    for name, hint, whole in _fields_within(kind):
        if _holds_int(whole) and not has(hint, (Capped, Between, Uncapped)):
            yield name


def undeclared(kind: Any) -> Iterator[str]:
    """Yield the names of fields, of a message and of all messages within it, whose type the checks cannot look into.

    Such a field could hold an integer that nothing bounds. NumPy's numbers and `NewType`s are among them: checks
    recognise only Python's own numbers.
    """
    for name, _, whole in _fields_within(kind):
        if not _is_declared(whole):
            yield name


def members(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, and any other type by itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fields_within(kind: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, marks and type of the fields of a message, and of all messages within it."""
    kind = bare(kind)[0]
    for option in _options(kind):
        yield from _fields_within(option)
    if not _has_fields(kind):
        return
    settings = kind.model_fields if issubclass(kind, BaseModel) else None
    for name, hint in declared(kind).items():
        whole: Any = bare(hint)[0] if settings is None else settings[name].annotation
        yield f"{kind.__name__}.{name}", hint, whole
        yield from _fields_within(whole)


def _has_fields(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel))


def _holds_int(kind: Any) -> bool:
    kind = bare(kind)[0]
    return kind is int or any(_holds_int(option) for option in _options(kind))


def _is_declared(kind: Any) -> bool:
    """Tell whether a type is one that checks know: a Python number or text, an array, a message, or made of these."""
    kind = bare(kind)[0]
    if options := _options(kind):
        return all(option is Ellipsis or _is_declared(option) for option in options)
    if get_origin(kind) in (Literal, np.ndarray):
        return True
    return kind in (int, float, bool, str, None, type(None), np.ndarray) or _has_fields(kind)
