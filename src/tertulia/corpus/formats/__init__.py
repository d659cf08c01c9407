"""File formats: each opens a file as column names and a stream of records, broken ones included.

CSV and JSON lines are read by Python's own parsers rather than by polars: those can name a broken line, drop only that
line and continue, in the memory of one row. A format is a module with `SUFFIXES` and `open_table`, in `_FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tertulia.corpus.formats import csv, jsonl, parquet, text
from tertulia.corpus.formats.base import Request, Table, is_compressed
from tertulia.errors import InputError

_FORMATS = (jsonl, csv, parquet, text)
_OPENERS: dict[str, Callable[[Path, Request], Table]] = {
    suffix: module.open_table for module in _FORMATS for suffix in module.SUFFIXES
}


def open_table(path: Path, request: Request) -> Table:
    """Open a file in the format of its suffix."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and is_compressed(path):
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _OPENERS:
        raise InputError(f"{path} is of no known kind: name it {', '.join(_OPENERS)} (or such with .gz, .bz2, .xz)")
    return _OPENERS[suffixes[-1]](path, request)
