"""Claimed beside real: a row for each thing that left a party, with what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tertulia.privacy import accounting
from tertulia.privacy.accounting import Guarantee
from tertulia.privacy.adjacency import common_level
from tertulia.privacy.mechanisms import Adjacency, Claim, Unit
from tertulia.privacy.releases import Release


@dataclass(frozen=True)
class ClaimRow:
    """Claimed beside real, for all releases of one thing by one mechanism.

    What is derived has the unit, adjacency and cost of the releases that it is computed from, its `sources`. They were
    charged once: costs of rows must not be added up.
    """

    what: str
    mechanism: str
    unit: Unit
    adjacency: Adjacency
    releases: int
    nbytes: int
    claimed: Claim | None
    real: Guarantee
    vacuous: str | None  # why the real value means nothing, if so
    finding: str | None = None  # what a mechanism found out about itself, with the data at hand, when it was last used
    sources: tuple[str, ...] = ()  # what a derived thing is computed from


@dataclass(frozen=True)
class Extent:
    """How much there is to protect, where it is known: `population` units, `words` in all."""

    population: int | None = None
    words: int | None = None


def claim_table(
    releases: Mapping[str, Release], real: Callable[[Sequence[Release], Unit, Adjacency], Guarantee], extent: Extent
) -> list[ClaimRow]:
    """A row for each thing, unit, mechanism and claim; `real` says what some releases cost together."""
    groups: dict[tuple[str, str, Unit, Adjacency, Claim | None], list[Release]] = {}
    for r in releases.values():
        groups.setdefault((r.what, r.name, r.unit, r.adjacency, r.claimed), []).append(r)
    rows = []
    for (what, name, _, _, claimed), group in groups.items():
        charged = _sources(group, releases)
        unit, adjacency = common_level((r.unit, r.adjacency) for r in charging_or_all(charged) or group)
        derived = [r for r in group if r.event is None]  # they cost nothing, but may assume something
        found = real([*charged, *derived], unit, adjacency)
        vacuous = accounting.vacuity_or_none(found, adjacency, extent.population, extent.words)
        nbytes = sum(r.nbytes for r in group)
        finding = group[-1].params.get("finding")
        sources = tuple(sorted({r.what for r in charged})) if any(r.event is None for r in group) else ()
        rows.append(
            ClaimRow(what, name, unit, adjacency, len(group), nbytes, claimed, found, vacuous, finding, sources)
        )
    return rows


def _sources(releases: Iterable[Release], known: Mapping[str, Release]) -> list[Release]:
    """The releases themselves; in place of derived ones, all that these are computed from."""
    found: dict[str, Release] = {}
    waiting = list(releases)[::-1]
    while waiting:
        release = waiting.pop()
        if release.event is not None:
            found[release.id] = release
        else:
            waiting += [known[parent] for parent in release.parents]
    return list(found.values())


def charging_or_all(sources: list[Release]) -> list[Release]:
    """The releases whose unit and adjacency a cost is stated in: those that charge, if there are such."""
    return [release for release in sources if release.charges] or sources
