"""Numbers in a ring: the fields of a reply as integers modulo 2^16, 2^32 or 2^64, which masks can hide.

A field's mark (`fields.Numbers`) declares its scale: a number x becomes the integer rint(x 2^scale). A party may hold
at most (2^(width - 1) - 1) / n in a cell, so that the total of n parties cannot wrap. Nothing is ever clipped: a party
that holds more asks for a wider ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError, InputError
from tertulia.federation.fields import Numbers, PublicCount, Weight, bare, declared

WIDTHS = (16, 32, 64)
BEYOND = "a sum needs numbers beyond every ring: a cell does not fit 64 bits, divided among the members"
_FLOAT_SCALE = 32  # of fields of floating-point numbers that declare none: steps of 2e-10
_MARGIN = 2  # a ring is narrowed if this multiple of the last total would still fit


class TooWide(Exception):
    """A number does not fit its ring."""


class Ring(NamedTuple):
    """The representation of a field: the width of its first sum, its scale, and whether it holds integers only."""

    width: int
    scale: int
    whole: bool


@lru_cache(maxsize=256)
def rings_of(kind: Any) -> dict[str, Ring]:
    """Return the representation of each field of a reply, by its mark; raise `FormatError` for a field without one."""
    return {name: _ring(kind, name, bare(hint)[1]) for name, hint in declared(kind).items()}


def _ring(kind: type, name: str, marks: tuple[Any, ...]) -> Ring:
    for mark in marks:
        if isinstance(mark, Numbers):
            whole = "f" not in mark.kinds
            return Ring(mark.ring, mark.scale or (0 if whole else _FLOAT_SCALE), whole)
    for mark in marks:
        if isinstance(mark, PublicCount):
            return Ring(64, _FLOAT_SCALE, False) if isinstance(mark, Weight) else Ring(32, 0, True)
    raise FormatError(
        f"field '{name}' of {kind.__name__} cannot be masked, for it declares no numbers: annotate it with a mark of "
        "tertulia.federation.fields"
    )


def bound(width: int, members: int) -> int:
    """Return the largest number that a member may hold.

    >>> bound(16, 5), bound(16, 50)
    (6553, 655)
    """
    return int((1 << (width - 1)) - 1) // members


def widths_of(kind: type, asked: Sequence[int]) -> tuple[int, ...]:
    """Return the width of each field of a reply. A question gives all, or one for all, or none: then the marks do.

    A server may not know beforehand which class of replies a step will give, and so how many fields there are.
    """
    rings = rings_of(kind)
    if not set(asked) <= set(WIDTHS) or len(asked) not in (0, 1, len(rings)):
        raise FormatError("a masked sum needs a width for each field: 16, 32 or 64")
    if not asked:
        return tuple(ring.width for ring in rings.values())
    return tuple(asked) if len(asked) == len(rings) else (asked[0],) * len(rings)


def to_integers(reply: Any) -> list[Array]:
    """Convert the fields of a reply to signed integers, at their scales; raise `TooWide` beyond 64 bits."""
    kind: Any = type(reply)
    return [_scaled(np.asarray(getattr(reply, name)), ring.scale) for name, ring in rings_of(kind).items()]


def _scaled(x: Array, scale: int) -> Array:
    if x.dtype.kind == "f":
        if not np.all(np.isfinite(x)):
            raise InputError("a number in a masked sum is not finite")
        x = np.rint(np.ldexp(x.astype(np.float64), scale))
        if x.size and max(x.max(), -x.min()) >= 2.0**62:
            raise TooWide
        return np.asarray(x.astype(np.int64))
    if x.dtype.kind not in "biu":
        raise InputError(f"a masked sum takes numbers, not {x.dtype}")
    if scale and x.size and max(int(x.max()), -int(x.min())) >> (62 - scale):
        raise TooWide
    return x.astype(np.int64) << scale if scale else x


def to_ring(integers: Sequence[Array], widths: Sequence[int], members: int) -> list[Array]:
    """Convert integers to unsigned ones of these widths, as new arrays; raise `TooWide` if one does not fit."""
    return [_in_ring(x, width, bound(width, members)) for x, width in zip(integers, widths, strict=True)]


def _in_ring(x: Array, width: int, most: int) -> Array:
    if x.size and (int(x.max()) > most or int(x.min()) < -most):
        raise TooWide
    return np.asarray(x).astype(f"<u{width // 8}", order="C")


def from_ring(kind: type, totals: Sequence[Array]) -> Any:
    """Convert totals to a message of this class: int64 where a field declares integers, else float64."""
    rings = rings_of(kind)
    return kind(**{name: _from_integers(total, rings[name]) for name, total in zip(rings, totals, strict=True)})


def _from_integers(total: Array, ring: Ring) -> Array:
    signed = total.view(f"<i{total.itemsize}").astype(np.int64)
    return signed if ring.whole else np.ldexp(signed.astype(np.float64), -ring.scale)


def wider(widths: Sequence[int]) -> tuple[int, ...]:
    """Return the next widths; raise `InputError` if all have 64 bits already."""
    if not widths:
        return (WIDTHS[-1],)
    if all(width == WIDTHS[-1] for width in widths):
        raise InputError(BEYOND)
    return tuple(WIDTHS[min(WIDTHS.index(width) + 1, len(WIDTHS) - 1)] for width in widths)


def fitting(totals: Sequence[Array], members: int) -> tuple[int, ...]:
    """Return the widths for a step's next sum, given its last totals in their rings.

    A single party's numbers may be larger than the total. So a margin is left, and a party that needs more asks for it.
    """
    return tuple(_fitting(total, members) for total in totals)


def _fitting(total: Array, members: int) -> int:
    width, signed = 8 * total.itemsize, total.view(f"<i{total.itemsize}")
    largest = max(int(signed.max(initial=0)), -int(signed.min(initial=0)))
    return next((w for w in WIDTHS if w <= width and _MARGIN * largest <= bound(w, members)), width)
