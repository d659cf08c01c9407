"""The report of a reading: how many rows were kept, dropped or noted, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tertulia._kinds import check_fields
from tertulia.corpus.languages import NAMES

_LATER = ("guessed", "queries", "languages")
_SHOWN = 0.01  # share of documents


@dataclass
class ReadReport:
    """Counts of rows read, kept and dropped, with the place of the first row for each reason.

    Places are file names with line numbers; documents are never quoted.

    >>> report = ReadReport()
    >>> report.keep()
    >>> report.drop("empty text", "notes.csv:7")
    >>> print(report.summary())
    2 rows read, 1 kept, 1 dropped
      dropped 1: empty text (first at notes.csv:7)
    """

    rows: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)  # kept, but suspicious: duplicate ids, documents without words
    examples: dict[str, str] = field(default_factory=dict)  # reason -> place of the first such row
    guessed: dict[str, int] = field(default_factory=dict)  # guess -> number of files, for example of an encoding
    languages: dict[str, float] = field(default_factory=dict)  # share of documents, by a sample; the first has most
    queries: dict[str, int] = field(default_factory=dict)  # hash of a query -> number of rows that it gave

    def keep(self) -> None:
        """Count a row that became a document."""
        self.rows += 1
        self.kept += 1

    def drop(self, reason: str, place: str | None = None, count: int = 1) -> None:
        """Count rows that did not become documents, and keep the place of the first one."""
        self.rows += count
        self._count(self.dropped, reason, place, count)

    def note(self, reason: str, place: str | None = None, count: int = 1) -> None:
        """Count documents that were kept but should be checked."""
        self._count(self.noted, reason, place, count)

    def guess(self, what: str, file: str) -> None:
        """Count a file of which something was guessed."""
        self._count(self.guessed, what, file, 1)

    def _count(self, counts: dict[str, int], reason: str, place: str | None, count: int) -> None:
        if count:
            counts[reason] = counts.get(reason, 0) + count
            if place is not None:
                self.examples.setdefault(reason, place)

    def summary(self) -> str:
        """Describe the report, one line per reason."""
        lines = [f"{self.rows} rows read, {self.kept} kept, {sum(self.dropped.values())} dropped"]
        for verb, counts in (("dropped", self.dropped), ("kept", self.noted)):
            for reason, count in counts.items():
                first = f" (first at {self.examples[reason]})" if reason in self.examples else ""
                lines.append(f"  {verb} {count}: {reason}{first}")
        for what, count in self.guessed.items():
            files = f"{count} files" if count > 1 else "1 file"
            lines.append(f"  guessed for {files}: {what} (first {self.examples[what]}); say it yourself if it is wrong")
        if self.languages:
            shown = ", ".join(f"{NAMES[name]} {share:.0%}" for name, share in self.languages.items() if share >= _SHOWN)
            lines.append(f"  languages, by a sample: {shown}")
        lines.extend(f"  {rows} rows are of the query {digest[:23]}" for digest, rows in self.queries.items())
        return "\n".join(lines)

    def __add__(self, other: ReadReport) -> ReadReport:
        """Add the reports of two readings."""
        return ReadReport(
            rows=self.rows + other.rows,
            kept=self.kept + other.kept,
            dropped=_add(self.dropped, other.dropped),
            noted=_add(self.noted, other.noted),
            examples={**other.examples, **self.examples},
            guessed=_add(self.guessed, other.guessed),
            queries=_add(self.queries, other.queries),
            languages=_mean(self, other),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; without what was added later, earlier versions can read it."""
        return {name: value for name, value in asdict(self).items() if name not in _LATER or value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReadReport:
        """Rebuild a report from `to_dict`."""
        check_fields(cls, dict(data))
        return cls(**data)


def _mean(one: ReadReport, other: ReadReport) -> dict[str, float]:
    """Return the shares of languages in both, by the number of documents."""
    total = (one.kept + other.kept) or 1
    both: dict[str, float] = {}
    for report in (one, other):
        for name, share in report.languages.items():
            both[name] = both.get(name, 0.0) + share * report.kept / total
    return dict(sorted(both.items(), key=lambda found: -found[1]))


def _add(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {reason: one.get(reason, 0) + other.get(reason, 0) for reason in {**one, **other}}
