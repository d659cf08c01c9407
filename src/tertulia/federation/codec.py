"""One format for wire, checkpoint and model file: safetensors with a JSON tree in its header.

Only data travels. A message is known by its class's name, which the receiver must have imported itself; there is
no pickle and no code. Encoding is deterministic, so the hash of a message identifies a question.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tertulia._arrays import Array
from tertulia.errors import FormatError
from tertulia.federation.types import message_name, message_type

_HEADER = "tertulia"  # one key only: safetensors does not promise the order of several


def encode(value: Any) -> bytes:
    """Encode arrays, numbers, strings, None, tuples, string-keyed dicts and messages of these.

    >>> decode(encode({"n": 3, "phi": np.ones(2)}))["phi"]
    array([1., 1.])
    """
    arrays: list[Array] = []
    tree = json.dumps(_flatten(value, arrays), separators=(",", ":"), ensure_ascii=False)
    tensors = {f"{i:06d}": a for i, a in enumerate(arrays)}
    return bytes(save(tensors, metadata={_HEADER: tree}))


def decode(data: bytes) -> Any:
    """Rebuild what `encode` was given; raise `FormatError` on anything else."""
    try:
        tensors = load(data)
        size = int.from_bytes(data[:8], "little")
        tree = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][_HEADER])
    except (SafetensorError, KeyError, ValueError) as error:
        raise FormatError(f"these {len(data)} bytes are not a Tertulia message or checkpoint ({error})") from error
    return _rebuild(tree, tensors)


def _flatten(value: Any, arrays: list[Array]) -> Any:
    """The JSON tree of a value; arrays are moved out and leave their number behind."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        # safetensors stores raw memory, so order and byte order are fixed here.
        flat = np.ascontiguousarray(value)
        arrays.append(flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(np.shape(value)))
        return {"array": len(arrays) - 1}
    if isinstance(value, (tuple, list)):
        if all(isinstance(v, str) for v in value):
            return {"words": list(value)}  # vocabularies: no need to look at each word again
        return {"tuple": [_flatten(v, arrays) for v in value]}
    if isinstance(value, dict):
        return {"dict": {str(k): _flatten(v, arrays) for k, v in value.items()}}
    if dataclasses.is_dataclass(value) or isinstance(value, BaseModel):
        name, names = message_name(value), _fields(type(value))
        return {"message": name, "fields": {field: _flatten(getattr(value, field), arrays) for field in names}}
    raise FormatError(f"a message cannot carry a {type(value).__name__}: use arrays, numbers, strings or messages")


def _rebuild(node: Any, tensors: dict[str, Array]) -> Any:
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return tensors[f"{node['array']:06d}"]
    if "words" in node:
        return tuple(node["words"])
    if "tuple" in node:
        return tuple(_rebuild(v, tensors) for v in node["tuple"])
    if "dict" in node:
        return {k: _rebuild(v, tensors) for k, v in node["dict"].items()}
    kind = message_type(node["message"])
    fields = {k: _rebuild(v, tensors) for k, v in node["fields"].items()}
    return _validate(kind, fields) if issubclass(kind, BaseModel) else kind(**fields)


def _validate(kind: type[BaseModel], fields: dict[str, Any]) -> BaseModel:
    """Settings that arrived, if their values may be."""
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
