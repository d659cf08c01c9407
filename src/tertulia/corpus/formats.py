"""File formats: each opens a file as its column names and a stream of records, broken ones included.

CSV and JSON lines go through Python's own parsers rather than polars: those can name the broken line, drop it alone
and go on, in the memory of one row. Parquet is streamed by polars in batches.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tertulia.errors import InputError

EMPTY = "empty file"
_COMPRESSED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_FIELD_LIMIT = 1 << 24  # characters of one CSV field; a quote that is never closed swallows at most so many
_PEEK = 100  # JSON lines looked at to learn the columns
_BATCH = 500  # Parquet rows


class Record(NamedTuple):
    """A row as it stands in the file, or what is wrong with it."""

    place: str
    values: Mapping[str, Any]
    problem: str = ""
    name: str | None = None  # what the row is known by if no column says so


class Table(NamedTuple):
    """An open file."""

    columns: tuple[str, ...]  # none if the file is empty
    records: Iterator[Record]


def format_of(path: Path) -> str:
    """Tell the format by the file's name: "jsonl", "csv", "parquet" or "text"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and is_compressed(path):
        suffixes.pop()
    formats = {
        **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
        **dict.fromkeys((".csv", ".tsv"), "csv"),
        **dict.fromkeys((".parquet", ".pq"), "parquet"),
        **dict.fromkeys((".txt", ".text", ".md"), "text"),
    }
    if not suffixes or suffixes[-1] not in formats:
        raise InputError(f"{path} is of no known kind: name it {', '.join(formats)} (or such with .gz, .bz2, .xz)")
    return formats[suffixes[-1]]


def is_compressed(path: Path) -> bool:
    """Tell whether the name says that the file is compressed."""
    return path.suffix.lower() in _COMPRESSED


def open_jsonl(path: Path, encoding: str) -> Table:
    """Open a file of one JSON object a line; blank lines do not count."""

    def records() -> Iterator[Record]:
        for number, line in enumerate(_lines(path, encoding, newline="\n"), start=1):
            if line.isspace():
                continue
            place = f"{path.name}:{number}"
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                yield Record(place, {}, "broken JSON")
                continue
            if isinstance(values, dict):
                yield Record(place, values)
            else:
                yield Record(place, {}, "not a JSON object (expected one {...} a line)")

    stream = records()
    first = list(islice(stream, _PEEK))
    if not first:
        return _empty(path)
    columns = dict.fromkeys(name for record in first for name in record.values)
    return Table(tuple(columns), chain(first, stream))


def open_csv(path: Path, encoding: str, separator: str | None = None) -> Table:
    """Open comma-separated values with a header line; a .tsv file is separated by tabs."""
    if separator is None:
        separator = "\t" if ".tsv" in path.suffixes else ","
    rows = _csv_rows(_lines(path, encoding, newline=""), separator)
    number, header = next(rows, (1, []))
    if header is None:
        raise InputError(f"{path}: the header in line {number} is broken (a quote is never closed)")
    if not any(header):
        return _empty(path)
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

    return Table(columns, records())


def _csv_rows(lines: Iterator[str], separator: str) -> Iterator[tuple[int, list[str] | None]]:
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


def open_parquet(path: Path, wanted: set[str]) -> Table:
    """Open a Parquet file, of which only the wanted columns are read."""
    import polars as pl
    from polars.exceptions import PolarsError

    def records() -> Iterator[Record]:
        number = 0
        try:
            for batch in frame.select(name for name in columns if name in wanted).collect_batches(chunk_size=_BATCH):
                for values in batch.iter_rows(named=True):
                    number += 1
                    yield Record(f"{path.name}: row {number}", values)
        except PolarsError as error:
            raise InputError(f"{path} is damaged after row {number}: {error}") from error

    try:
        frame = pl.scan_parquet(path)
        columns = tuple(frame.collect_schema().names())
    except (PolarsError, OSError) as error:
        raise InputError(f"{path} is not a readable Parquet file: {error}") from error
    return Table(columns, records())


def open_text(path: Path, root: Path, encoding: str) -> Table:
    """Open a text file as one record, with its path below the root and its folder as columns."""
    place = path.relative_to(root).as_posix()
    with _open(path) as file, _reading(path):
        raw = file.read()
    problem, text = "", ""
    try:
        text = raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError:
        problem = not_encoded(encoding)
    if "\0" in text:
        problem = "not text (zero bytes)"
    values = {"text": text, "path": place, "folder": path.parent.name}
    return Table(tuple(values), iter([Record(place, values, problem, name=place)]))


def not_encoded(encoding: str) -> str:
    """Word the reason for dropping a row with undecodable bytes."""
    return f"bytes that are not {encoding.upper()}"


def _empty(path: Path) -> Table:
    return Table((), iter([Record(path.name, {}, EMPTY)]))


def _open(path: Path) -> BinaryIO:
    opener = _COMPRESSED.get(path.suffix.lower())
    try:
        file: BinaryIO = path.open("rb") if opener is None else opener(path)
    except OSError as error:
        raise InputError(f"cannot open {path}: {error.strerror}") from error
    return file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise InputError(f"{path} cannot be read to its end: {error}") from error


def _lines(path: Path, encoding: str, newline: str) -> Iterator[str]:
    """Decode lines; bytes that do not decode pass as lone surrogates, so that only their own row is dropped."""
    with _open(path) as file, _reading(path):
        try:
            yield from _decoded(file, path, encoding, newline)
        except UnicodeError as error:
            raise InputError(f"{path} is not {encoding}: name its real encoding with encoding=...") from error


def _decoded(file: BinaryIO, path: Path, encoding: str, newline: str) -> Iterator[str]:
    if encoding == "utf-8" and b"\0" in file.read(4096):
        raise InputError(
            f"{path} is not UTF-8 text (it holds zero bytes): if it is UTF-16, pass encoding='utf-16'; "
            "if it is Parquet or compressed, give it the right suffix"
        )
    file.seek(0)
    codec = "utf-8-sig" if encoding == "utf-8" else encoding  # a byte order mark is no part of the first name
    with io.TextIOWrapper(file, codec, errors="surrogateescape", newline=newline) as lines:
        yield from lines
