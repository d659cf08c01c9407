"""Output of commands: lines, JSON, tables that fit the terminal, and progress.

Words, names and reasons come from other people. Only this module makes them safe for a terminal: they are never parsed
as rich's markup, and control characters are escaped.
"""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tertulia._plain import plain, plain_json

_LONGEST_SETTING = 300  # characters
NOBODY_READS = 141  # exit code of a command whose output was closed, as after SIGPIPE


class _Console(Console):
    """A console that ends quietly when its output is closed."""

    def on_broken_pipe(self) -> NoReturn:
        """End the command: `tertulia topics RUN | head -1` is no error."""
        end_unread()


errors = _Console(stderr=True)
output = _Console()


def be_quiet(quiet: bool) -> None:
    """Print results and errors only, or everything again."""
    errors.quiet = quiet


def say(text: str) -> None:
    """Print a line on stderr without wrapping, so that logs can be searched."""
    errors.print(Text(plain(text)), soft_wrap=True)


def say_error(text: str) -> None:
    """Print a line on stderr, even if all else is quiet."""
    was, errors.quiet = errors.quiet, False
    say(text)
    errors.quiet = was


def line(text: str) -> None:
    """Print a line on stdout without wrapping, so that a command in it can be copied."""
    output.print(Text(plain(text)), soft_wrap=True)


def show(text: str) -> None:
    """Print text on stdout, wrapped."""
    output.print(Text(plain(text)))


def end_unread() -> NoReturn:
    """Exit because the output was closed; discard what is still in buffers."""
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
    """Replace numbers that JSON does not have by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def size(n: float) -> str:
    """Format a number of bytes.

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
    """Print a table; numbers are aligned right. Words are never cut: a table that is too wide is printed row by row."""
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
    """Print dicts of the same keys as a table; if it is too wide, values that all rows share are printed below."""
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
        if 0 < abs(value) < 1e-4:  # a delta of 1e-06 stays so; what is computed has no more digits than say something
            return f"{value:.1g}"
        return f"{value:.4g}" if abs(value) < 100 else f"{value:.0f}"
    return plain(str(value))


class Steps:
    """Progress: a bar on a terminal, else lines in a log. Call it with the number of finished steps and a text."""

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
        """Show the progress; in a log, print at most one line in `every` seconds."""
        if errors.is_terminal:
            self._bar.update(self._task, completed=done, facts=text)
        elif (now := time.monotonic()) - self._last >= self._every:
            self._last = now
            say(f"{self._label}: {text}")


class RoundProgress:
    """Observer of a run that shows round, parties, perplexity, bytes and time left."""

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
        """Show a round or a warning."""
        if kind == "warning":
            say(f"warning: {facts['text']}")
            return
        self._steps(int(facts["round"]), describe(facts))


def counted(number: int, one: str, several: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "party", "parties"), counted(3, "party", "parties")
    ('1 party', '3 parties')
    """
    return f"{number} {one if number == 1 else several}"


def describe(facts: Mapping[str, Any]) -> str:
    """Describe a round in one line."""
    down, up = (sum(pair[i] for pair in facts["bytes"].values()) for i in (0, 1))
    parts = [f"round {facts['round']}", counted(sum(up > 0 for _, up in facts["bytes"].values()), "party", "parties")]
    if "topics" in facts:
        parts.append(f"{facts['topics']} topics")
    if "perplexity" in facts:
        parts.append(f"perplexity {facts['perplexity']:.0f}")
    if facts.get("left_out"):
        parts.append(f"no support for {' and '.join(facts['left_out'])}")
    return ", ".join([*parts, f"{size(down + up)}"])


def print_totals(title: str, totals: Sequence[Mapping[str, Any]]) -> None:
    """Print the total cost; print remarks, which many rows share, once below."""
    shared = any(row["single reply epsilon"] != row["real epsilon"] for row in totals)
    singly = ("single reply epsilon",) if shared else ()
    audited = ("audited lower bound",) if any(row["audited lower bound"] != "not audited" for row in totals) else ()
    shown = ("party", "of", "claimed epsilon", "real epsilon", *singly, *audited, "delta", "holds")
    rows = merged([{name: row[name] for name in shown} for row in totals], "party")
    records(f"{title}, everything together, if one of these is replaced, or is there or not where it says so", rows)
    for remark in dict.fromkeys(remark for row in totals for remark in row["remarks"].split("; ") if remark):
        show(f"- {remark}")


def print_dry_run(report: Mapping[str, Any]) -> None:
    """Print the report of a dry run; parties with equal rows share one."""
    records("Would be read", report["read"])
    table("Would receive what leaves, as stated by the operator", ["", "stated"], list(report["recipient"].items()))
    for title, part in (("Words, documents and terms of the run", "terms"), ("Would be trained", "train")):
        table(title, ["setting", "value"], [(key, _short(value)) for key, value in report[part].items()])
    print_totals("Would cost", report["totals"])
    records("Budgets, in all runs from the same home", merged(report["budgets"], "party"))
    records("Would be disclosed", for_people(merged(added_up(report["disclosed"], "times"), "party")))
    for remark in report["remarks"]:
        show(remark)


def for_people(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what another column says in words: that a release is masked."""
    return [{name: value for name, value in row.items() if name != "masked"} for row in rows]


def _short(value: Any) -> Any:
    """Cut the value of a setting to a few lines; of a long word list the first words are enough."""
    value = f"{len(value):,}: {', '.join(map(str, value))}" if isinstance(value, tuple) else value
    text = str(value)
    return (
        value
        if len(text) <= _LONGEST_SETTING
        else f"{text[:_LONGEST_SETTING].rsplit(' ', 1)[0]} ... (--json has all of it)"
    )


_BORDER = 3  # characters beside each column; the table has one more at its end
_LONGEST_WORD = 24  # a longer word is a path or a hexadecimal number: it may be cut
_INDENT = 2


def widths_or_none(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column; None if the longest words do not fit.

    >>> widths_or_none(["party", "what"], [["north", "a few words that can be wrapped"]], 30)
    [5, 18]
    """
    columns = [[name, *(row[i] for row in cells)] for i, name in enumerate(names)]
    least = [max(map(_longest_word, column)) for column in columns]
    wanted = [max(max(map(len, cell.split("\n"))) for cell in column) for column in columns]
    room = width - 1 - _BORDER * len(names)
    if sum(least) > room:
        return None
    return _share(least, wanted, room)


def merged(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    """Merge rows that differ in one key only.

    >>> merged([{"party": "north", "n": 1}, {"party": "south", "n": 1}], "party")
    [{'party': 'north, south', 'n': 1}]
    """
    return [{**alike[0], key: ", ".join(str(row[key]) for row in alike)} for alike in _alike(rows, key)]


def added_up(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    """Merge rows that differ in one number only, and add that up.

    >>> added_up([{"what": "words", "times": 1}, {"what": "words", "times": 8}], "times")
    [{'what': 'words', 'times': 9}]
    """
    return [{**alike[0], key: sum(row[key] for row in alike)} for alike in _alike(rows, key)]


def _alike(rows: Sequence[Mapping[str, Any]], key: str) -> list[list[Mapping[str, Any]]]:
    """Group rows that are equal but for one key, in the order of their first."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(str(value) for name, value in row.items() if name != key), []).append(row)
    return list(found.values())


def common(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values that all of several rows share."""
    first = rows[0] if len(rows) > 1 else {}
    return {name: value for name, value in first.items() if all(row.get(name) == value for row in rows)}


def _share(least: list[int], wanted: list[int], room: int) -> list[int]:
    """Distribute the remaining width, character by character, to the column that would be the tallest."""
    widths = list(least)
    for _ in range(min(room, sum(wanted)) - sum(least)):
        short = [i for i, width in enumerate(widths) if width < wanted[i]]
        widths[max(short, key=lambda i: wanted[i] / widths[i])] += 1
    return widths


def _longest_word(text: str) -> int:
    return min(max(map(len, text.split()), default=1), _LONGEST_WORD)


def stacked(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """Format rows one below the other, each name beside its value; leave out empty values."""
    label = max(map(len, names), default=0)
    if label > width // 2:
        return [line for row in cells for line in _below(names, row, width)]
    lines = []
    for row in cells:
        first = "- "
        for name, value in zip(names, row, strict=True):
            if value:
                head, rest = f"{first}{name:<{label}}  ", " " * (label + 2 * _INDENT)
                lines += _wrap(value, width, initial_indent=head, subsequent_indent=rest)
                first = "  "
    return lines


def _below(names: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """Format a row with each value below its name, because names are long."""
    lines = []
    for name, value in zip(names, row, strict=True):
        if value:
            lines += [*_wrap(f"- {name}", width), *_wrap(value, width, initial_indent=" " * _INDENT)]
    return lines


def _wrap(text: str, width: int, **indents: str) -> list[str]:
    return textwrap.TextWrapper(width, break_on_hyphens=False, **indents).wrap(text)  # type: ignore[arg-type]
