"""Comma-separated values with a header line; the separator may also be a semicolon, a bar or a tab."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

from tertulia.corpus.formats.base import Record, Request, Table, empty_table, encoding_of, read_lines
from tertulia.errors import InputError

SUFFIXES = (".csv", ".tsv")
_FIELD_LIMIT = 1 << 24  # characters of one field: the most that an unclosed quote can swallow
_SEPARATORS = (",", ";", "\t", "|")
_HINT = " If something else separates its fields, say so: separator=..."


def open_table(path: Path, request: Request) -> Table:
    """Open a file, and check each row against the header."""
    encoding, guesses = encoding_of(path, request)
    separator, usual = request.separator, "\t" if ".tsv" in path.suffixes else ","
    if separator is None:
        separator = guess_separator(_first_line(path, encoding), request.wanted, usual)
        guesses += () if separator == usual else (f"separator = {separator!r}",)
    rows = _rows(read_lines(path, encoding, newline=""), separator)
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

    hint = _HINT if len(columns) == 1 else ""
    return Table(columns, records(), hint=hint, encoding=encoding, guesses=guesses)


def guess_separator(header: str, wanted: Collection[str], usual: str) -> str:
    """Guess the separator from the header line: the one that gives the most of the wanted columns.

    >>> guess_separator("id;text", {"text"}, usual=",")
    ';'
    """

    def fitness(separator: str) -> tuple[int, int, bool]:
        try:
            names = [name.strip() for name in next(csv.reader([header], delimiter=separator), [])]
        except csv.Error:
            return 0, 0, False
        return len(set(wanted) & set(names)), len(names), separator == usual

    return max((usual, *_SEPARATORS), key=fitness)


def _first_line(path: Path, encoding: str) -> str:
    with closing(read_lines(path, encoding, newline="")) as lines:
        return next((line for line in lines if not line.isspace()), "")


def _rows(lines: Iterator[str], separator: str) -> Iterator[tuple[int, list[str] | None]]:
    """Parse rows, each with the number of its first line; None where a row is broken.

    An unclosed quote swallows the lines after it until the parser fails. Only the line with the quote is broken: the
    others are parsed again.
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
        if row:  # a blank line gives []
            yield number, row
        number += len(taken)
