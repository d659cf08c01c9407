"""Comma-separated values with a header line; a .tsv file is separated by tabs."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tertulia.corpus.formats.base import Record, Request, Table, empty_table, read_lines
from tertulia.errors import InputError

SUFFIXES = (".csv", ".tsv")
_FIELD_LIMIT = 1 << 24  # characters of one field; a quote that is never closed swallows at most so many
_HINT = " If fields are not separated by commas, pass separator=..."


def open_table(path: Path, request: Request) -> Table:
    """Open a file; each row is checked against the header."""
    separator = request.separator
    if separator is None:
        separator = "\t" if ".tsv" in path.suffixes else ","
    rows = _rows(read_lines(path, request.encoding, newline=""), separator)
    number, header = next(rows, (1, []))
    if header is None:
        raise InputError(f"{path}: the header in line {number} is broken (a quote is never closed)")
    if not any(header):
        return empty_table(path)
    columns = tuple(name.strip() for name in header)

    def records() -> Iterator[Record]:
        for number, row in rows:
            place = f"{path.name}:{number}"
            if row is None:
                yield Record(place, {}, "broken CSV (quotes do not match)")
            elif len(row) != len(columns):
                yield Record(place, {}, f"broken CSV (not {len(columns)} fields)")
            else:
                yield Record(place, dict(zip(columns, row, strict=True)))

    return Table(columns, records(), hint=_HINT if len(columns) == 1 else "")


def _rows(lines: Iterator[str], separator: str) -> Iterator[tuple[int, list[str] | None]]:
    """Parse rows, each with the number of its first line; None where a row is broken.

    A quote that is never closed swallows the lines after it until the parser notices. Only the line with the quote is
    broken: the others are read again.
    """
    again: deque[str] = deque()
    taken: list[str] = []

    def feed() -> Iterator[str]:
        while True:
            line = again.popleft() if again else next(lines, None)
            if line is None:
                return
            taken.append(line)
            yield line

    csv.field_size_limit(max(csv.field_size_limit(), _FIELD_LIMIT))
    reader, number = csv.reader(feed(), delimiter=separator, strict=True), 1
    while True:
        taken.clear()
        try:
            row = next(reader, None)
        except csv.Error:
            again.extendleft(reversed(taken[1:]))
            reader = csv.reader(feed(), delimiter=separator, strict=True)
            yield number, None
            number += 1
            continue
        if row is None:
            return
        if row:  # csv gives [] for a blank line
            yield number, row
        number += len(taken)
