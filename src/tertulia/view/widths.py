"""How wide the columns of a table are, so that it fits a terminal and no word is cut."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

_BORDER = 3  # characters beside each column, and one more at the end
_LONGEST = 24  # a longer word is a path or a number in hexadecimal digits: it may be cut
_INDENT = 2


def widths_or_none(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Characters for each column; None if not even the longest words fit beside each other.

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
    """Rows that differ in one key only, as one.

    >>> merged([{"party": "north", "n": 1}, {"party": "south", "n": 1}], "party")
    [{'party': 'north, south', 'n': 1}]
    """
    return [{**alike[0], key: ", ".join(str(row[key]) for row in alike)} for alike in _alike(rows, key)]


def added_up(rows: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
    """Rows that differ in one number only, or not at all, as one with the sum.

    >>> added_up([{"what": "words", "times": 1}, {"what": "words", "times": 8}], "times")
    [{'what': 'words', 'times': 9}]
    """
    return [{**alike[0], key: sum(row[key] for row in alike)} for alike in _alike(rows, key)]


def _alike(rows: Sequence[Mapping[str, Any]], key: str) -> list[list[Mapping[str, Any]]]:
    """Rows that are the same but for one key, in the order in which they begin."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(str(value) for name, value in row.items() if name != key), []).append(row)
    return list(found.values())


def common(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is the same in all of several rows."""
    first = rows[0] if len(rows) > 1 else {}
    return {name: value for name, value in first.items() if all(row.get(name) == value for row in rows)}


def _share(least: list[int], wanted: list[int], room: int) -> list[int]:
    """Give what is left, character by character, to the column that would otherwise be the tallest."""
    widths = list(least)
    for _ in range(min(room, sum(wanted)) - sum(least)):
        short = [i for i, width in enumerate(widths) if width < wanted[i]]
        widths[max(short, key=lambda i: wanted[i] / widths[i])] += 1
    return widths


def _longest_word(text: str) -> int:
    return min(max(map(len, text.split()), default=1), _LONGEST)


def stacked(names: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows one below the other: each name beside its value; what is empty is left out."""
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
    """The same where names are long: each value below its name."""
    lines = []
    for name, value in zip(names, row, strict=True):
        if value:
            lines += [*_wrap(f"- {name}", width), *_wrap(value, width, initial_indent=" " * _INDENT)]
    return lines


def _wrap(text: str, width: int, **indents: str) -> list[str]:
    return textwrap.TextWrapper(width, break_on_hyphens=False, **indents).wrap(text)  # type: ignore[arg-type]
