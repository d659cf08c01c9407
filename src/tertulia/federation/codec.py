"""One format for wire, checkpoint and model file: safetensors with a JSON tree in its header.

Only data travel. A message names its class, which the receiver must have imported itself; there is no pickle and no
code. Encoding is deterministic, so the hash of a message identifies a question.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tertulia._arrays import Array
from tertulia._kinds import check_fields, check_parts
from tertulia.errors import FormatError
from tertulia.federation.types import message_name, message_type

_HEADER = "tertulia"  # one key only: safetensors does not promise the order of several
_MOST_TREE = 1 << 26  # bytes of JSON, words included; the number of its parts is checked, too
_INTEGERS = range(-(2**63), 2**64)
_NO_TEXT = "holds text that is none: half a character (a lone surrogate)"
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # may be a lone surrogate, which is not valid text


def encode(value: Any) -> bytes:
    """Encode arrays, numbers, strings, None, tuples, string-keyed dicts and messages of these.

    >>> decode(encode({"n": 3, "phi": np.ones(2)}))["phi"]
    array([1., 1.])
    """
    arrays: list[Array] = []
    tree = json.dumps(_flatten(value, arrays), separators=(",", ":"), ensure_ascii=False)
    if len(tree) > _MOST_TREE:
        raise FormatError(f"a message has {len(tree)} characters of words and numbers: at most {_MOST_TREE} can travel")
    tensors = {f"{i:06d}": a for i, a in enumerate(arrays)}
    try:
        return bytes(save(tensors, metadata={_HEADER: tree}))
    except UnicodeEncodeError:
        raise FormatError(f"a message {_NO_TEXT}") from None


def decode(data: bytes) -> Any:
    """Rebuild what `encode` was given; raise `FormatError` on anything else."""
    try:
        size = int.from_bytes(data[:8], "little")
        if size > _MOST_TREE:
            raise FormatError(f"a header of {size} bytes is beyond {_MOST_TREE}")
        check_parts(data[8 : 8 + size])
        tensors = load(data)
        text = json.loads(data[8 : 8 + size])["__metadata__"][_HEADER]
        tree = json.loads(text)
        if _HALF_CHARACTER.search(text) and not _is_text(tree):
            raise FormatError(_NO_TEXT)
        return _rebuild(tree, tensors)
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise FormatError(f"these {len(data)} bytes are not a Tertulia message or checkpoint ({error})") from error


def _flatten(value: Any, arrays: list[Array]) -> Any:
    """Convert a value to a JSON tree; arrays are moved to the list, and their numbers stand in the tree."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        if value not in _INTEGERS:
            raise FormatError(f"a message cannot carry {value}: integers have at most 64 bits")
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        # safetensors stores raw memory, so order and byte order are fixed here.
        flat = np.ascontiguousarray(value)
        arrays.append(flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(np.shape(value)))
        return {"array": len(arrays) - 1}
    if isinstance(value, (tuple, list)):
        if all(isinstance(v, str) for v in value):
            return {"words": list(value)}  # vocabularies: saves one call per word
        return {"tuple": [_flatten(v, arrays) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(k): _flatten(v, arrays) for k, v in value.items()}}
    if dataclasses.is_dataclass(value) or isinstance(value, BaseModel):
        name, names = message_name(value), _fields(type(value))
        return {"message": name, "fields": {field: _flatten(getattr(value, field), arrays) for field in names}}
    raise FormatError(f"a message cannot carry a {type(value).__name__}: use arrays, numbers, strings or messages")


def _is_text(tree: Any) -> bool:
    try:
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _rebuild(node: Any, tensors: dict[str, Array]) -> Any:
    if node is None or isinstance(node, (bool, float, str)):
        return node
    if isinstance(node, int):
        if node not in _INTEGERS:
            raise FormatError("a number is beyond 64 bits")
        return node
    match node:
        case {"array": int(number)}:
            return tensors[f"{number:06d}"]
        case {"words": list(words)} if all(isinstance(word, str) for word in words):
            return tuple(words)
        case {"tuple": list(items)}:
            return tuple(_rebuild(v, tensors) for v in items)
        case {"dict": dict(items)}:
            return {k: _rebuild(v, tensors) for k, v in items.items()}
        case {"message": str(name), "fields": dict(items)}:
            return _message(message_type(name), {k: _rebuild(v, tensors) for k, v in items.items()})
    raise FormatError("its parts are none that a message has")


def _message(kind: type, fields: dict[str, Any]) -> Any:
    """Build a message from received fields, after checking them against their declarations."""
    if issubclass(kind, BaseModel):
        return _validate(kind, fields)
    check_fields(kind, fields)
    return kind(**fields)


def _validate(kind: type[BaseModel], fields: dict[str, Any]) -> BaseModel:
    """Build settings from received fields, after validating them."""
    name = f"{kind.__module__}:{kind.__qualname__}"
    if fields.keys() != kind.model_fields.keys():
        differ = sorted(fields.keys() ^ kind.model_fields.keys())
        raise FormatError(f"settings {name} differ in {differ} between the two sides, which need one version")
    try:
        return kind.model_validate(fields, strict=True)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, e['loc'])) or name} = {e['input']!r}: {e['msg']}" for e in error.errors()]
        raise FormatError(f"settings {name} cannot be as they arrived: {'; '.join(wrong)}") from error


def _fields(kind: Any) -> Iterable[str]:
    return kind.model_fields if issubclass(kind, BaseModel) else [field.name for field in dataclasses.fields(kind)]
