"""Layouts: where the records of a known origin have their texts, ids, dates, labels and users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tertulia.corpus.formats.base import Record, Table
from tertulia.corpus.sources import cordis, fhir, nsf, omop, openalex
from tertulia.corpus.sources.base import Layout, Opened
from tertulia.errors import InputError

LAYOUTS: Mapping[str, Layout] = {
    "table": Layout({}),
    "omop": omop.LAYOUT,
    "fhir": fhir.LAYOUT,
    "openalex": openalex.LAYOUT,
    "cordis": cordis.LAYOUT,
    "nsf": nsf.LAYOUT,
}


def layout_of(name: str) -> Layout:
    """Return a layout by its name."""
    if name not in LAYOUTS:
        raise InputError(f"format = '{name}' is unknown: choose one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


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
