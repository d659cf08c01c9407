"""Checks that decoded values have the types that a class declares: numbers, texts, arrays, messages. And frozen dicts.

Only types are checked. The code that uses a number or an array checks how large it may be.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NoReturn, Self, TypeVar, Union

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError

# Python's numbers, each with the NumPy kinds of scalars that count as such.
_NUMBERS: dict[Any, str] = {bool: "b", int: "iu", float: "iuf"}

_K = TypeVar("_K")
_V = TypeVar("_V")
_MOST_CONTAINERS, _MOST_ITEMS = 1 << 20, 1 << 22  # of parsed JSON: an empty list or a word takes 64 bytes


def check_fields(kind: type, values: dict[str, Any]) -> None:
    """Raise `FormatError` if a value does not have its field's type, or if there is no such field."""
    declared = declared_kinds(kind)
    for name, value in values.items():
        if name not in declared:
            raise FormatError(f"{kind.__name__} has no field '{name}': both sides need one version")
        if not fits(value, declared[name]):
            raise FormatError(f"field '{name}' of {kind.__name__} cannot be a {type(value).__name__}")


def check_parts(text: bytes) -> None:
    """Raise `FormatError` if JSON has too many parts: parsed, they take far more memory than the text.

    Brackets and commas within strings count too. The limits are far above the needs of any message.
    """
    if text.count(b"[") + text.count(b"{") > _MOST_CONTAINERS or text.count(b",") > _MOST_ITEMS:
        raise FormatError("it has too many parts")


def check_array(name: str, array: Array, shape: tuple[int, ...], least: float | None = None) -> None:
    """Raise `FormatError` unless an array has this shape, and no entry below `least`."""
    if np.shape(array) != shape:
        raise FormatError(f"'{name}' has shape {np.shape(array)}, not {shape}")
    if least is not None and np.size(array) and not np.min(array) >= least:
        raise FormatError(f"'{name}' goes below {least:g}")


@lru_cache(maxsize=256)
def declared_kinds(kind: type) -> dict[str, Any]:
    """Return the fields of a message, each with its annotation."""
    return typing.get_type_hints(kind)


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value has a type.

    >>> fits(3, int), fits(True, int), fits(("a", 1), tuple[str, ...]), fits(None, int | None)
    (True, False, False, True)
    """
    if kind in _NUMBERS:
        return _is_number(value, kind)
    origin, inner = _taken_apart(kind)
    if kind is Any or kind is object or isinstance(kind, typing.TypeVar):
        return True
    if kind is None or kind is type(None):
        return value is None
    if origin is Union or origin is types.UnionType:
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if inner == (str, ...) and isinstance(value, tuple) and set(map(type, value)) <= {str}:
            return True  # a fast path for long lists of words
        each = inner[:1] * len(value) if inner[1:] == (...,) and isinstance(value, tuple) else inner
        return isinstance(value, tuple) and len(each) == len(value) and all(map(fits, value, each))
    if origin is list:
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if origin is dict or origin is Mapping:
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    wanted = origin or kind
    if wanted is np.ndarray:  # NumPy's 64-bit float is a Python float too, and travels as one
        return isinstance(value, np.ndarray | float)
    return isinstance(value, wanted) if isinstance(wanted, type) else True


@lru_cache(maxsize=1024)
def _taken_apart(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split `list[int]` into list and int; cached, because `typing` is slow and every field is checked."""
    return typing.get_origin(kind), typing.get_args(kind)


def _is_number(value: Any, kind: Any) -> bool:
    if isinstance(value, np.ndarray):  # the codec decodes a NumPy number as an array
        return value.ndim == 0 and value.dtype.kind in _NUMBERS[kind]
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


class FrozenDict(dict[_K, _V]):
    """A dict that cannot change: values of settings, which parties of one process share.

    >>> FrozenDict(a=1)["b"] = 2
    Traceback (most recent call last):
    TypeError: this dict cannot change: make another one of it with `|`
    """

    def _refuse(self, *args: Any, **named: Any) -> NoReturn:
        raise TypeError("this dict cannot change: make another one of it with `|`")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the same dict: pydantic copies default values."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as one call: entries cannot be set afterwards."""
        return type(self), (dict(self),)
