"""Untrusted text made safe for terminals, JSON and spreadsheets: control characters and formulas are escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

# Control characters (C0, DEL, C1), marks that change the direction of writing, line separators, and lone surrogates,
# which cannot be encoded. Tabs and line ends are harmless.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def plain(text: str, most: int | None = None) -> str:
    r"""Escape control characters as `\x1b`, and truncate a text longer than `most`.

    >>> plain("red \x1b[31m")
    'red \\x1b[31m'
    """
    if most is not None and len(text) > most:
        text = f"{text[:most]} ..."
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def check_plain(text: str) -> str:
    """Raise `ValueError` if a text that people read before they approve holds control characters."""
    if plain(text) != text:
        raise ValueError("it holds control characters: write plain text")
    return text


def plain_json(text: str) -> str:
    """Escape control characters as JSON does, so that the parsed values stay the same."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def as_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula; numbers stay numbers.

    >>> as_cell("=1+1"), as_cell("rain"), as_cell("-2.5")
    ("'=1+1", 'rain', '-2.5')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def write_csv(table: pl.DataFrame, path: Path) -> None:
    """Write a table as CSV, with every text and column name escaped by `as_cell`."""
    import polars as pl

    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    cells = [pl.col(name).map_elements(as_cell, return_dtype=pl.String) for name in texts]
    table.with_columns(cells).rename({name: as_cell(name) for name in table.columns}).write_csv(path)
