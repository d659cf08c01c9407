"""A panel of the book: one figure or table, declared once.

A *measure* is a function of keyword arguments and a seed that returns scores by name. An *entry* of a panel takes one
score of one call (a bar or a table's cell), or all scores of a prefix (a curve). Entries that make the same call share
it, within a panel and between panels. *Checks* are the verdict: sentences that are fixed before anything is measured,
each with a function of the numbers.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Lines = Mapping[str, Mapping[str, Sequence[float]]]  # line -> x -> the value of each seed
PAPERS = {
    "FTM": "FTM and iFTM (CIKM 2019, TIST 2021)",
    "FedLDA": "FedLDA (AAAI 2020)",
    "PC-TD": "PC-TD (IEEE Intelligent Systems 2020)",
    "gFedNTM": "gFedNTM (2022)",
    "worth": "What federating is worth",
    "peers": "Other implementations",
}


class Entry(NamedTuple):
    """A point of a line, or with no `x` a curve, and the call of the measure that it comes from."""

    line: str
    arguments: Mapping[str, Any]
    x: str = ""
    score: str = "perplexity"  # of a curve: the names `score@x`

    def take(self, scores: Mapping[str, float]) -> dict[str, float]:
        """Return the points of this entry by x."""
        if self.x:
            return {self.x: scores[self.score]}
        found = (name.split("@", 1) for name in scores if name.startswith(f"{self.score}@"))
        return {x: scores[f"{prefix}@{x}"] for prefix, x in found}


class Size(NamedTuple):
    """How large a run is: its seeds, the arguments that all calls have, and the lines and points that it measures."""

    seeds: tuple[int, ...]
    arguments: Mapping[str, Any]
    lines: tuple[str, ...] = ()  # none: all
    xs: tuple[str, ...] = ()


class Found:
    """The numbers of a panel, for checks and pages: means over seeds unless something else is said."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def __call__(self, line: str, x: str | None = None) -> float:
        """Return the mean of a point; without `x` that of a line's last one."""
        return statistics.fmean(self.seeds(line, x))

    def seeds(self, line: str, x: str | None = None) -> list[float]:
        """Return the value of each seed."""
        points = self.lines[line]
        return list(points[x if x is not None else list(points)[-1]])

    def xs(self, line: str) -> list[str]:
        """Return the names of a line's points, in the order of the declaration."""
        return list(self.lines[line])

    def curve(self, line: str) -> list[float]:
        """Return the means of a line's points."""
        return [self(line, x) for x in self.lines[line]]


class Check(NamedTuple):
    """A sentence that holds or not, and the function of the numbers that decides."""

    says: str
    holds: Callable[[Found], bool]
    counts: bool = True  # for the verdict; else it stands beside, for another reading or setting


@dataclass(frozen=True)
class Panel:
    """One figure or table, and everything that is said about it."""

    name: str
    paper: str  # a key of PAPERS
    number: str  # "figure 5a", "table 2"; empty: not from a paper
    title: str
    claim: str  # what the paper says
    measure: str  # "module:function"
    entries: tuple[Entry, ...]
    full: Size
    quick: Size
    control: str
    checks: tuple[Check, ...]
    minutes: float  # the CPU share of the full size
    axes: tuple[str, str] = ("", "")
    logs: str = ""  # axes of the picture with a logarithmic scale: "x", "y" or "xy"
    reduced: str = ""  # by how much the full size is below what the paper or the plan has; empty: as printed
    kind: str = "lines"  # or "bars": a row for each line, a dot for each point
    corpora: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    quick_packages: tuple[str, ...] = ()  # what only the quick size needs: without it, a result has no quick numbers
    remark: str = ""
    computed: tuple[Callable[[Found], str], ...] = ()  # further sentences, from the numbers
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # values in the paper's text, line -> x

    def calls(self, size: Size) -> Iterator[tuple[dict[str, Any], list[Entry]]]:
        """Yield each call of the measure once, for all seeds, with the entries that it serves."""
        found: list[tuple[dict[str, Any], list[Entry]]] = []
        for entry in self.entries:
            if (size.lines and entry.line not in size.lines) or (size.xs and entry.x and entry.x not in size.xs):
                continue
            arguments = {**size.arguments, **entry.arguments}
            for known, served in found:
                if known == arguments:
                    served.append(entry)
                    break
            else:
                found.append((arguments, [entry]))
        yield from found

    def configuration(self) -> dict[str, Any]:
        """Return everything that the numbers depend on."""
        sizes: dict[str, Any] = {}
        for name, size in (("full", self.full), ("quick", self.quick)):
            sizes[name] = [
                (sorted(arguments.items()), [(e.line, e.x, e.score) for e in served], size.seeds)
                for arguments, served in self.calls(size)
            ]
        return {"measure": self.measure, **sizes}
