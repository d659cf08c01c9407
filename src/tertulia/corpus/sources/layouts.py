"""Layouts: where the records of a known origin have their texts, ids, dates, labels and users."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from tertulia.corpus.formats.base import Record, Table
from tertulia.corpus.sources.base import Layout, Opened
from tertulia.errors import InputError

PLAIN = "table"
LAYOUTS = (PLAIN, "omop", "fhir", "openalex", "cordis", "nsf")  # each has a module of its name, with its `LAYOUT`


def layout_of(name: str) -> Layout:
    """Return a layout by its name."""
    if name not in LAYOUTS:
        raise InputError(f"format = '{name}' is unknown: choose one of {', '.join(LAYOUTS)}")
    if name == PLAIN:
        return Layout({})
    found: Layout = import_module(f"tertulia.corpus.sources.{name}").LAYOUT
    return found


def converted(opened: Opened, layout: Layout) -> Opened:
    """Convert the records of a table to the columns of a layout."""
    convert, table = layout.convert, opened.table
    if convert is None or not table.columns:
        return opened
    if not any(name in table.columns for name in layout.marks):
        raise InputError(
            f"{opened.name} has no column {' or '.join(layout.marks)}, so it is not of this format: {layout.hint}"
        )

    def records() -> Iterator[Record]:
        for record in table.records:
            yield record if record.problem else convert(record)

    changed: Table = table._replace(columns=layout.gives, records=records())
    return opened._replace(table=changed)
