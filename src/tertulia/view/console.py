"""Tables and progress on a terminal.

Words, names and reasons are other people's: here, and nowhere else, they are made fit for a terminal. They are never
read as rich's markup, and control characters are written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tertulia._plain import plain, plain_json

errors = Console(stderr=True)
output = Console()


def say(text: str) -> None:
    """Print a line on stderr, however long: terminals wrap, and logs can be searched."""
    errors.print(Text(plain(text)), soft_wrap=True)


def line(text: str) -> None:
    """Print a line on stdout, however long, so that a command in it can be copied."""
    output.print(Text(plain(text)), soft_wrap=True)


def show(text: str) -> None:
    """Print text on stdout as it is."""
    output.print(Text(plain(text)))


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, for machines."""
    print(plain_json(json.dumps(facts, ensure_ascii=False, default=str)), flush=True)


def size(n: float) -> str:
    """Write a number of bytes for people.

    >>> size(1536)
    '1.5 kB'
    """
    if n < 1000:
        return f"{n:.0f} B"
    for unit in ("kB", "MB"):
        n /= 1024
        if n < 1000:
            return f"{n:.1f} {unit}"
    return f"{n / 1024:.1f} GB"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table; numbers stand to the right."""
    drawn = Table(title=Text(plain(title)), title_justify="left", header_style="bold")
    rows = [tuple(row) for row in rows]
    for i, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        drawn.add_column(Text(plain(column)), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*[_cell(value) for value in row])
    output.print(drawn)


def records(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print dicts of the same keys as a table."""
    table(title, list(rows[0]) if rows else ["nothing"], [list(row.values()) for row in rows])


def _cell(value: Any) -> Text:
    if isinstance(value, float):
        return Text(f"{value:.4g}" if abs(value) < 100 else f"{value:.0f}")
    return Text(plain(str(value)))


class RoundProgress:
    """A progress bar with round, parties, perplexity, bytes and time left; use it as a run's observer."""

    def __init__(self, rounds: int, label: str) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(),
            TextColumn("{task.fields[facts]}", markup=False), TimeRemainingColumn(),
            console=errors, transient=False,
        )  # fmt: skip
        self._task: TaskID = self._bar.add_task(
            plain(label), total=rounds, facts="starting (a first run compiles kernels)"
        )

    def __enter__(self) -> RoundProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Take note of a round or of a warning."""
        if kind == "warning":
            say(f"warning: {facts['text']}")
            return
        self._bar.update(self._task, completed=facts["round"], facts=describe(facts))


def describe(facts: Mapping[str, Any]) -> str:
    """One round in one line."""
    down, up = (sum(pair[i] for pair in facts["bytes"].values()) for i in (0, 1))
    parts = [f"round {facts['round']}", f"{len(facts['bytes'])} parties"]
    if "topics" in facts:
        parts.append(f"{facts['topics']} topics")
    if "perplexity" in facts:
        parts.append(f"perplexity {facts['perplexity']:.0f}")
    if facts.get("left_out"):
        parts.append(f"nobody vouched for {' and '.join(facts['left_out'])}")
    return ", ".join([*parts, f"{size(down + up)}"])


def print_totals(title: str, totals: Sequence[Mapping[str, Any]]) -> None:
    """Print what everything together costs; remarks, which many rows share, stand below."""
    shown = ("party", "of", "real epsilon", "holds")
    table(f"{title}, everything together, if one of these is replaced", shown, [[r[n] for n in shown] for r in totals])
    for remark in dict.fromkeys(remark for row in totals for remark in row["remarks"].split("; ") if remark):
        show(f"- {remark}")


def print_dry_run(report: Mapping[str, Any]) -> None:
    """Print what a dry run found."""
    records("Would be read", report["read"])
    table("Would be trained", ["setting", "value"], report["train"].items())
    print_totals("Would cost", report["totals"])
    records("Budgets, in all runs from the same home", report["budgets"])
    records("Would be disclosed", report["disclosed"])
