"""Whether values that were read are of the kinds that a class declares: numbers, texts, arrays, messages.

Kinds only. How large a number or an array may be is for those to check who know what it means.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Union

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError

_NUMBERS: dict[Any, str] = {bool: "b", int: "iu", float: "iuf"}  # and the kinds of arrays without axes that serve


def check_fields(kind: type, values: dict[str, Any]) -> None:
    """Raise `FormatError` if a field's value cannot be one, or if there is no such field."""
    declared = declared_kinds(kind)
    for name, value in values.items():
        if name not in declared:
            raise FormatError(f"{kind.__name__} has no field '{name}': both sides need one version")
        if not fits(value, declared[name]):
            raise FormatError(f"field '{name}' of {kind.__name__} cannot be a {type(value).__name__}")


def check_array(name: str, array: Array, shape: tuple[int, ...], least: float | None = None) -> None:
    """Raise `FormatError` unless an array has this shape, and no entry below `least`."""
    if np.shape(array) != shape:
        raise FormatError(f"'{name}' has shape {np.shape(array)}, not {shape}")
    if least is not None and np.size(array) and not np.min(array) >= least:
        raise FormatError(f"'{name}' goes below {least:g}")


@lru_cache(maxsize=256)
def declared_kinds(kind: type) -> dict[str, Any]:
    """The fields of a message, each with its annotation."""
    return typing.get_type_hints(kind)


def fits(value: Any, kind: Any) -> bool:
    """Tell whether a value is of a kind.

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
            return True  # long lists of words, in no time
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
    """`list[int]` into list and int; every field of every message is asked for, and `typing` is slow."""
    return typing.get_origin(kind), typing.get_args(kind)


def _is_number(value: Any, kind: Any) -> bool:
    if isinstance(value, np.ndarray):  # so a NumPy number comes back
        return value.ndim == 0 and value.dtype.kind in _NUMBERS[kind]
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)
