"""Ways to damage bytes: flips, cuts, splices, and changes of JSON that keep it JSON."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

_ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x",
    "\ud800", "\x1b[31m", "../../x", "%s" * 5, "x" * 5000, [], {}, [[]], [None], {"": {}}, "array", "message",
]  # fmt: skip


def _odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(_ODD))


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Damage bytes in one of several ways."""
    way = rng.choice((_flip, _flip, _cut, _splice, _overwrite, _empty))
    return way(data, rng)


def _flip(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if found else 0):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + (rng.randbytes(rng.randrange(40)) if rng.random() < 0.3 else b"")


def _splice(data: bytes, rng: random.Random) -> bytes:
    a, b, c = (rng.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[min(b, c) : max(b, c)] + data[a:]


def _overwrite(data: bytes, rng: random.Random) -> bytes:
    """Overwrite eight bytes that may be a length: by zero, a huge or a random number."""
    at = rng.randrange(len(data) + 1)
    value = rng.choice((0, 1, 2**31, 2**62, 2**64 - 1, rng.getrandbits(64), rng.getrandbits(16)))
    return data[:at] + value.to_bytes(8, "little") + data[at + 8 :]


def _empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"", b"\0" * 64, rng.randbytes(100), b"null", b"{}", b"[" * 100_000))


def mutate_tree(tree: Any, rng: random.Random) -> Any:
    """Change a tree of JSON in one place or a few: another value, a key less, a key more, parts exchanged."""
    whole = [json.loads(json.dumps(tree))]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(holders(whole))
        holder, key = rng.choice(places)
        change = rng.random()
        if change < 0.5:
            holder[key] = _odd(rng)
        elif change < 0.65:
            other, place = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[place]))
        elif change < 0.8 and holder is not whole:
            del holder[key]
        elif isinstance(holder, dict):
            holder[rng.choice(("x", "", "array", "fields", "format", str(key) + "x"))] = _odd(rng)
        elif holder is not whole:
            holder.insert(rng.randrange(len(holder) + 1), _odd(rng))
    return whole[0]


def holders(node: Any) -> Any:
    """Yield all places in a tree of JSON: the container and the key."""
    places = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(places):
        yield node, key
        if isinstance(value, dict | list) and value:
            yield from holders(value)


def mutate_json(data: bytes, rng: random.Random) -> bytes:
    """Change a JSON document in its structure, or as bytes."""
    if rng.random() < 0.3:
        return mutate(data, rng)
    return json.dumps(mutate_tree(json.loads(data), rng), ensure_ascii=rng.random() < 0.7).encode("utf-8", "replace")


def mutate_safetensors(data: bytes, rng: random.Random) -> bytes:
    """Change the tree in the header of an encoded message, and write a header that matches; or damage bytes."""
    if rng.random() < 0.3:
        return mutate(data, rng)
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    about = header.get("__metadata__", {})
    if "tertulia" in about and rng.random() < 0.85:
        about["tertulia"] = json.dumps(mutate_tree(json.loads(about["tertulia"]), rng))
    else:
        header = mutate_tree(header, rng)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


Mutation = Callable[[bytes, random.Random], bytes]
