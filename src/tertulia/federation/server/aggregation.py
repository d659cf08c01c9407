"""How replies to `sum` and `mean` are added up.

The contract, on which equal results at any worker count and on any engine rest:

- a reply is a message whose fields are all numeric arrays, of the same shapes at every party; each field is added up by
  itself;
- integers are added in int64 and floating numbers in float64, whatever their width on the wire;
- the sum starts at zero and takes one reply after the other, in the order in which it gets them, which is party order.
  Floating addition depends on the order, so another order may give other bits.

For `mean` a party has multiplied its fields by its weight before it answers; the server divides the totals by the sum
of the weights. So `mean` is a `sum` too, and whatever hides single replies from the server need only be done here and
where a party prepares its reply.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError, QuorumError


def add_replies(replies: Sequence[Any]) -> Any:
    """The total of all replies, as a message of their kind."""
    first = replies[0]
    totals = {f.name: _add(f.name, [getattr(reply, f.name) for reply in replies]) for f in dataclasses.fields(first)}
    return dataclasses.replace(first, **totals)


def average_replies(replies: Sequence[Any]) -> Any:
    """The weighted mean of replies that parties have multiplied by their weights; `weight` is the sum of weights."""
    total = add_replies(replies)
    if not 0 < total.weight < np.inf:
        raise QuorumError(f"the weights of all replies sum to {total.weight}: no mean exists")
    names = [f.name for f in dataclasses.fields(total) if f.name != "weight"]
    return dataclasses.replace(total, **{name: getattr(total, name) / total.weight for name in names})


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
