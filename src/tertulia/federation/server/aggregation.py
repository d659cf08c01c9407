"""Sums and means of replies.

Results are equal at any worker count and on any engine, because of these rules:

- a reply is a message whose fields are all numeric arrays, with the same shapes at every party; each field is added up
  separately;
- integers are added in int64 and floating-point numbers in float64, independently of their width on the wire;
- the sum starts at zero and adds one reply after another, in party order. Floating-point addition depends on the order,
  so another order may give other bits.

For `mean`, a party multiplies its fields by its weight before it answers, and the server divides the totals by the sum
of the weights. So `mean` is a `sum`, too. With secure sums, replies are masked integers, which `secure_sums` adds up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError, QuorumError
from tertulia.federation.fields import Weight, field_with


def add_replies(replies: Sequence[Any]) -> Any:
    """Return the total of all replies, as a message of the same class."""
    first = replies[0]
    totals = {f.name: _add(f.name, [getattr(reply, f.name) for reply in replies]) for f in dataclasses.fields(first)}
    return dataclasses.replace(first, **totals)


def average_replies(replies: Sequence[Any]) -> Any:
    """Return the weighted mean of replies that parties have multiplied by their weights, and the sum of weights."""
    return divide(add_replies(replies))


def divide(total: Any) -> Any:
    """Divide the total of weighted replies by the total of their weights."""
    weighted_by = str(field_with(type(total), Weight))
    weight = getattr(total, weighted_by)
    if not 0 < weight < np.inf:
        raise QuorumError(f"the weights of all replies sum to {weight}: no mean exists")
    names = [f.name for f in dataclasses.fields(total) if f.name != weighted_by]
    return dataclasses.replace(total, **{name: getattr(total, name) / weight for name in names})


def weight_of(reply: Any) -> float:
    """Return the weight of a reply to `mean`."""
    return float(getattr(reply, str(field_with(type(reply), Weight))))


def _add(name: str, parts: Sequence[Any]) -> Array:
    values = [np.asarray(part) for part in parts]
    shapes = {value.shape for value in values}
    if len(shapes) != 1 or not np.issubdtype(values[0].dtype, np.number):
        raise FormatError(f"field '{name}' cannot be summed: parties sent {sorted(shapes)}")
    wide = np.int64 if np.issubdtype(values[0].dtype, np.integer) else np.float64
    total: Array = np.zeros(values[0].shape, dtype=wide)
    for value in values:
        total += value
    if not np.all(np.isfinite(total)):
        raise FormatError(f"field '{name}' has no finite sum: a reply holds NaN, infinity or numbers beyond all bounds")
    return total
