"""Inputs of mechanisms on two neighbouring data sets, and the rules by which they may differ.

A guarantee holds for a mechanism whose input moves by no more than the declared sensitivity, and for all that is
computed from released values alone. Both can be tested: a run is recorded on a data set, and replayed on a neighbour,
while the outputs of all mechanisms stay those of the recording. Then the only differences left are those of inputs
(Cebere, Erb, Desfontaines, Bellet and Fitzsimons, "Privacy in Theory, Bugs in Practice", 2026).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tertulia._arrays import Array
from tertulia.privacy.adjacency import Bounds, multiplicity
from tertulia.privacy.mechanisms import Adjacency, Clear, Derived, Mechanism, Public, Randomiser, Unit

KINDS = {
    "sensitivity": "the input moves by more than the declared sensitivity",
    "derived": "what is said to be computed from releases alone depends on the data",
    "public": "what is declared public depends on the data",
    "shape": "shape or type of what leaves depends on the data",
    "releases": "number, order or kind of releases depends on the data",
    "charge": "the charge, its parameters or its assumptions depend on the data",
    "noise": "the same noise would be added to other data",
    "reply": "which release stands in which field of a reply depends on the data",
    "failure": "the step fails on one of the two data sets alone",
}
_SLACK = 1e-9  # relative, for norms in floating point


class Level(NamedTuple):
    """A kind of neighbours."""

    unit: Unit
    adjacency: Adjacency


@dataclass(frozen=True)
class Violation:
    """A promise that does not hold, with the step and the release that break it."""

    kind: str  # of `KINDS`
    neighbour: str
    step: str
    what: str
    round: int
    declared: float = math.nan  # distances in the norm and scale of the mechanism; NaN where there is none
    observed: float = math.nan

    @property
    def text(self) -> str:
        """Say it in a sentence.

        >>> Violation("sensitivity", "a word replaced", "count", "word counts", 0, 1.0, 2.0).text
        "count, 'word counts', round 0, a word replaced: the input moves by more than the declared sensitivity (2 > 1)"
        """
        size = "" if math.isnan(self.observed) else f" ({self.observed:.6g} > {self.declared:.6g})"
        return f"{self.step}, '{self.what}', round {self.round}, {self.neighbour}: {KINDS[self.kind]}{size}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the sentence; distances as text, for JSON knows no infinity."""
        numbers = {"declared": str(self.declared), "observed": str(self.observed)}
        return asdict(self) | numbers | {"text": self.text}


class Difference(NamedTuple):
    """How a neighbour differs: the kind, and how many documents its unit has."""

    level: Level
    documents: int = 1


class Found(NamedTuple):
    """A difference between two inputs: its kind, and the distances where it is one of inputs."""

    kind: str
    declared: float = math.nan
    observed: float = math.nan


@dataclass(frozen=True)
class Fed:
    """What a mechanism was fed: its inputs, and the facts that the ledger records."""

    mechanism: Mechanism
    inputs: tuple[Array, ...]
    noise: str  # the name of the noise: its release, with a MAC of the contents
    promised: bool = True  # False: it leaves without noise, or is computed from what did

    def compare(self, other: Fed, difference: Difference) -> Iterator[Found]:
        """List the differences to the input on a neighbour that no promise allows."""
        if not self.promised:
            return
        one, two = self.mechanism, other.mechanism
        if _terms(one) != _terms(two):
            yield Found("charge")
        if not (isinstance(one, Randomiser) or one.grows) and _kinds(self.inputs) != _kinds(other.inputs):
            yield Found("shape")
            return
        declared, observed = self.distances(other, difference)
        if observed > declared * (1 + _SLACK):
            kind = {Derived: "derived", Public: "public"}.get(type(one), "sensitivity")
            yield Found(kind, declared, observed)
        if _is_noisy(one) and observed > 0 and self.noise == other.noise:
            yield Found("noise")

    def distances(self, other: Fed, difference: Difference) -> tuple[float, float]:
        """Return how far the neighbour's input may be, and how far it is."""
        m = self.mechanism
        known = multiplicity((m.unit, m.adjacency), difference.level, Bounds(), local=m.local)
        times = math.inf if known.why_not else known.group * known.copies
        if m.local and m.unit is Unit.USER:  # each document is charged as a user, and the ledger adds them up
            times *= difference.documents
        return (m.reach * times if m.reach else 0.0), m.distance(self.inputs, other.inputs)


def promises(mechanism: Mechanism) -> bool:
    """Return whether a mechanism adds noise that promises something by itself."""
    charge = mechanism.charge()
    return charge is not None and charge["type"] not in ("NoOpDpEvent", "NonPrivateDpEvent")


def covers(mechanism: Mechanism, level: Level) -> bool:
    """Return whether a mechanism's promise says anything about neighbours of this kind.

    Where reports are drawn for each token, lengths are public, so it says nothing of documents that come and go. A
    neighbour with other words of one user keeps the lengths.
    """
    if mechanism.local and level.unit is not Unit.TOKEN and level != Level(Unit.USER, Adjacency.SUBSTITUTE):
        return False
    return not multiplicity((mechanism.unit, mechanism.adjacency), level, Bounds(), local=mechanism.local).why_not


def _is_noisy(mechanism: Mechanism) -> bool:
    return not isinstance(mechanism, Clear | Public | Derived)


def _kinds(inputs: tuple[Array, ...]) -> list[tuple[str, tuple[int, ...]]]:
    return [(x.dtype.str, x.shape) for x in inputs]


def _terms(m: Mechanism) -> tuple[Any, ...]:
    """Return all that the ledger records of a mechanism, except what names its contents."""
    params = {name: value for name, value in m.params().items() if name not in m.own_params}
    parents = tuple(getattr(p, "release_id", p) for p in m.parents) if isinstance(m, Derived) else ()
    public = (m.unit, m.adjacency, m.sensitivity, m.claimed, m.assumptions, m.metric, m.documents_per_user)
    return (m.name, m.what, m.charge(), params, parents, *public)
