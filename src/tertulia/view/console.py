"""Tables and progress on a terminal.

Words, names and reasons are other people's: here, and nowhere else, they are made fit for a terminal. They are never
read as rich's markup, and control characters are written out.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tertulia._plain import plain, plain_json
from tertulia.view.widths import added_up, common, merged, stacked, widths_or_none

_LONGEST = 300  # characters of a setting
NOBODY_READS = 141  # the exit code of a command whose output is no longer read, as of one that SIGPIPE ends


class _Console(Console):
    """A console that ends quietly when nobody reads any more."""

    def on_broken_pipe(self) -> NoReturn:
        """End the command: `tertulia topics RUN | head -1` is no error."""
        end_unread()


errors = _Console(stderr=True)
output = _Console()


def be_quiet(quiet: bool) -> None:
    """Print results and errors only, or everything again."""
    errors.quiet = quiet


def say(text: str) -> None:
    """Print a line on stderr, however long: terminals wrap, and logs can be searched."""
    errors.print(Text(plain(text)), soft_wrap=True)


def say_error(text: str) -> None:
    """Print a line on stderr, even if all else is quiet."""
    was, errors.quiet = errors.quiet, False
    say(text)
    errors.quiet = was


def line(text: str) -> None:
    """Print a line on stdout, however long, so that a command in it can be copied."""
    output.print(Text(plain(text)), soft_wrap=True)


def show(text: str) -> None:
    """Print text on stdout as it is."""
    output.print(Text(plain(text)))


def end_unread() -> NoReturn:
    """End, because nobody reads what is printed; what is still in buffers goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    sys.exit(NOBODY_READS)


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout, for machines."""
    try:
        print(plain_json(json.dumps(_finite(facts), ensure_ascii=False, default=str)), flush=True)
    except BrokenPipeError:
        end_unread()


def _finite(value: Any) -> Any:
    """The same, with null for numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


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
    """Print a table; numbers stand to the right. Words are never cut: what is too wide is printed row by row."""
    rows = [tuple(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in rows]
    names = [plain(column) for column in columns]
    widths = widths_or_none(names, cells, output.width)
    if widths is None:
        show("\n".join([plain(title), *stacked(names, cells, output.width)]))
        return
    drawn = Table(title=Text(plain(title)), title_justify="left", header_style="bold")
    for i, (name, width) in enumerate(zip(names, widths, strict=True)):
        numeric = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        drawn.add_column(Text(name), justify="right" if numeric else "left", overflow="fold", width=width)
    for row in cells:
        drawn.add_row(*map(Text, row))
    output.print(drawn)


def records(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print dicts of the same keys as a table; where that is too wide, what all have in common stands below."""
    if not rows:
        table(title, ["nothing"], [])
        return
    names, cells = list(rows[0]), [[_cell(value) for value in row.values()] for row in rows]
    same = {} if widths_or_none(names, cells, output.width) else common(rows)
    same = same if len(same) < len(names) else {}
    table(title, [n for n in names if n not in same], [[v for n, v in row.items() if n not in same] for row in rows])
    if same := {name: value for name, value in same.items() if _cell(value)}:
        show(f"of all of these: {'; '.join(f'{name} {_cell(value)}' for name, value in same.items())}")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 100 else f"{value:.0f}"
    return plain(str(value))


class Steps:
    """A bar on a terminal, else a line now and then; call it with how many were done, and a text."""

    def __init__(self, label: str, total: int, text: str = "", every: float = 0.0) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(),
            TextColumn("{task.fields[facts]}", markup=False), TimeRemainingColumn(),
            console=errors, transient=False,
        )  # fmt: skip
        self._label, self._every, self._last = label, every, -every
        self._task: TaskID = self._bar.add_task(plain(label), total=total, facts=text)

    def __enter__(self) -> Steps:
        if errors.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if errors.is_terminal:
            self._bar.stop()

    def __call__(self, done: int, text: str) -> None:
        """Show how far it is; in a log, one line for each call, but at most one in every so many seconds."""
        if errors.is_terminal:
            self._bar.update(self._task, completed=done, facts=text)
        elif (now := time.monotonic()) - self._last >= self._every:
            self._last = now
            say(f"{self._label}: {text}")


class RoundProgress:
    """Round, parties, perplexity, bytes and time left; use it as a run's observer."""

    def __init__(self, rounds: int, label: str) -> None:
        self._steps = Steps(label, rounds, "starting (a first run compiles kernels)")

    def __enter__(self) -> RoundProgress:
        self._steps.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._steps.__exit__(kind, error, trace)

    def __call__(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Take note of a round or of a warning."""
        if kind == "warning":
            say(f"warning: {facts['text']}")
            return
        self._steps(int(facts["round"]), describe(facts))


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
    rows = merged([{name: row[name] for name in shown} for row in totals], "party")
    records(f"{title}, everything together, if one of these is replaced", rows)
    for remark in dict.fromkeys(remark for row in totals for remark in row["remarks"].split("; ") if remark):
        show(f"- {remark}")


def print_dry_run(report: Mapping[str, Any]) -> None:
    """Print what a dry run found; of parties of which the same holds in one row."""
    records("Would be read", report["read"])
    table("Would be trained", ["setting", "value"], [(key, _short(value)) for key, value in report["train"].items()])
    print_totals("Would cost", report["totals"])
    records("Budgets, in all runs from the same home", merged(report["budgets"], "party"))
    records("Would be disclosed", merged(added_up(report["disclosed"], "times"), "party"))


def _short(value: Any) -> Any:
    """A setting on a few lines: of a list of thousands of words the first are enough."""
    text = str(value)
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} ... (--json has all of it)"
