"""Sources: each opens documents where they live, as tables: files, addresses on the web, and databases.

A source streams. If it breaks off in the middle, reading raises an error and the corpus under construction is thrown
away, so that nothing half-read is trained on. Credentials come from environment variables that the party names. They
are in no setting, no recipe and no error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from tertulia.corpus.formats import open_table
from tertulia.corpus.formats.base import Request
from tertulia.corpus.sources import sql
from tertulia.corpus.sources.base import Opened, Origin
from tertulia.corpus.sources.files import list_files

__all__ = ["Opened", "Origin", "open_tables"]


def open_tables(origin: Origin, wanted: Collection[str]) -> Iterator[Opened]:
    """Open the tables of a source one after the other; `wanted` are the columns to be used."""
    columns = frozenset(wanted)
    if origin.query is not None:
        yield sql.open_query(origin, columns)
        return
    for file, root in list_files(origin.path):
        table = open_table(file, Request(root, origin.encoding, origin.separator, columns))
        name = file.name.split(".")[0] if table.source is None else table.source
        yield Opened(str(file), name, Path(file).name, table)
