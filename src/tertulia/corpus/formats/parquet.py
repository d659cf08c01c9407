"""Parquet, streamed by polars in batches; only the wanted columns are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tertulia.corpus.formats.base import Record, Request, Table
from tertulia.errors import InputError

SUFFIXES = (".parquet", ".pq")
_BATCH = 500  # rows


def open_table(path: Path, request: Request) -> Table:
    """Open a file; values are converted to text later, as in any table."""
    import polars as pl
    from polars.exceptions import PolarsError

    def records() -> Iterator[Record]:
        number = 0
        try:
            wanted = frame.select(name for name in columns if name in request.wanted)
            for batch in wanted.collect_batches(chunk_size=_BATCH):
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
