"""Conversion of one privacy unit and adjacency to another: how many neighbours lie between.

A guarantee for tokens is never stated as one for documents: a document of L tokens is L tokens at once. Where no bound
is known, nothing is converted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tertulia.privacy.mechanisms import Adjacency, Unit

_ORDER = list(Unit)
_STEPS = {  # (known, asked for): how many known neighbours one asked-for neighbour is away
    (Adjacency.ADD_REMOVE, Adjacency.SUBSTITUTE): 2,  # remove one, add another
    (Adjacency.ADD_REMOVE, Adjacency.NULL_REPLACE): 2,  # remove one, add the empty one
    (Adjacency.NULL_REPLACE, Adjacency.SUBSTITUTE): 2,  # empty it, fill it again
}


@dataclass(frozen=True)
class Bounds:
    """The most smaller units that a larger one may hold; None where the party promises nothing.

    >>> Bounds.loosest([Bounds(50, 1), Bounds(400, 1), Bounds(20)])
    Bounds(tokens_per_document=400, documents_per_user=None)
    """

    tokens_per_document: int | None = None
    documents_per_user: int | None = None
    policies: frozenset[str] = field(default=frozenset(), compare=False, repr=False)  # names of the rules that say so

    @classmethod
    def loosest(cls, several: Iterable[Bounds]) -> Bounds:
        """Return the limits that hold for everything that one of several limits holds for."""
        found = list(several)
        tokens = [one.tokens_per_document or math.inf for one in found]
        documents = [one.documents_per_user or math.inf for one in found]
        loose = [None if (most := max(limits)) == math.inf else int(most) for limits in (tokens, documents)]
        return cls(loose[0], loose[1])

    def refined(self, own: Bounds | None) -> Bounds:
        """Return the same limits, but for those that a release keeps by itself."""
        if own is None:
            return self
        return Bounds(own.tokens_per_document or self.tokens_per_document,
                      own.documents_per_user or self.documents_per_user, self.policies)  # fmt: skip

    def of_a_document(self, tokens: int | None) -> Bounds:
        """Return the same limits for a document (or a user's) that is known to have no more than `tokens` tokens."""
        if tokens is None:
            return self
        return replace(self, tokens_per_document=min(tokens, self.tokens_per_document or tokens))


@dataclass(frozen=True)
class Multiplicity:
    """The meaning of one neighbour for an event: the size of a group of units, and the number of independent copies."""

    group: int = 1
    copies: int = 1
    units: int = 1  # of the group, if adjacencies were the same
    assumptions: tuple[str, ...] = ()
    why_not: str = ""  # not empty: no bound is known


def common_level(known: Iterable[tuple[Unit, Adjacency]]) -> tuple[Unit, Adjacency]:
    """Choose unit and adjacency to state several guarantees in: the largest unit, substituted if adjacencies differ.

    >>> common_level([(Unit.TOKEN, Adjacency.NULL_REPLACE), (Unit.DOCUMENT, Adjacency.ADD_REMOVE)])
    (<Unit.DOCUMENT: 'document'>, <Adjacency.SUBSTITUTE: 'substitute'>)
    """
    units, adjacencies = zip(*known, strict=True)
    same = len(set(adjacencies)) == 1
    return max(units, key=_ORDER.index), adjacencies[0] if same else Adjacency.SUBSTITUTE


def multiplicity(
    known: tuple[Unit, Adjacency], asked: tuple[Unit, Adjacency], bounds: Bounds, *, local: bool = False
) -> Multiplicity:
    """Convert an event that holds for `known` neighbours to `asked` ones.

    `local` reports are drawn from each unit alone, so L units are L independent copies of the event; any other
    mechanism sees all L move the same number: a group of L.

    >>> token, document = (Unit.TOKEN, Adjacency.SUBSTITUTE), (Unit.DOCUMENT, Adjacency.SUBSTITUTE)
    >>> multiplicity(token, document, Bounds(tokens_per_document=120), local=True).copies
    120
    """
    (have, how), (want, wanted_how) = known, asked
    if _ORDER.index(want) < _ORDER.index(have):
        wanted_how = Adjacency.SUBSTITUTE  # any change of a part makes another whole
    steps = 1 if how is wanted_how else _STEPS.get((how, wanted_how))
    if steps is None:
        return Multiplicity(why_not=f"a guarantee for {how.value} says nothing about {wanted_how.value}")
    size, assumptions = 1, []
    for part in _ORDER[_ORDER.index(have) : _ORDER.index(want)]:
        limit = {Unit.TOKEN: bounds.tokens_per_document, Unit.DOCUMENT: bounds.documents_per_user}.get(part)
        whole = _ORDER[_ORDER.index(part) + 1].value
        if limit is None:
            return Multiplicity(
                why_not=f"charged per {part.value}, and no limit of {part.value}s per {whole} is declared"
            )
        size *= limit
        assumptions.append(f"a {whole} holds at most {limit} {part.value}s")
    group, copies = (steps, size) if local else (steps * size, 1)
    return Multiplicity(group, copies, group // steps, tuple(assumptions))
