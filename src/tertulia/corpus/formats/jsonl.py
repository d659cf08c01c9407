"""JSON lines: one object per line; blank lines are skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from tertulia.corpus.formats.base import Record, Request, Table, empty_table, encoding_of, read_lines

SUFFIXES = (".jsonl", ".ndjson", ".json")
_PEEK = 100  # lines read to find the columns


def open_table(path: Path, request: Request) -> Table:
    """Open a file of JSON lines; its columns are the keys of the first lines."""
    encoding, guesses = encoding_of(path, request)

    def records() -> Iterator[Record]:
        for number, line in enumerate(read_lines(path, encoding, newline="\n"), start=1):
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
                yield Record(place, {}, "not a JSON object (expected one {...} per line)")

    stream = records()
    first = list(islice(stream, _PEEK))
    if not first:
        return empty_table(path)
    columns = dict.fromkeys(name for record in first for name in record.values)
    return Table(tuple(columns), chain(first, stream), encoding=encoding, guesses=guesses)
