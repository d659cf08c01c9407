"""Sources: each opens documents where they live, as tables: files, addresses on the web, and databases.

A source streams. If it breaks off in the middle, reading raises an error and the corpus under construction is thrown
away, so that nothing half-read is trained on. Credentials come from environment variables that the party names. They
are in no setting, no recipe and no error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from os import PathLike
from pathlib import Path

from tertulia.corpus.formats.base import Request
from tertulia.corpus.sources.base import Opened, Origin, address_in, is_address
from tertulia.corpus.sources.files import list_files
from tertulia.corpus.sources.layouts import converted

__all__ = ["Opened", "Origin", "open_tables"]


def open_tables(origin: Origin, wanted: Collection[str]) -> Iterator[Opened]:
    """Open the tables of a source one after the other; `wanted` are the columns to be used."""
    columns = frozenset(origin.layout.raw or wanted)
    if origin.query is not None:
        from tertulia.corpus.sources import sql

        yield converted(sql.open_query(origin, columns), origin.layout)
        return
    if origin.address_env is not None:
        from tertulia.corpus.sources import remote

        address = address_in(origin.address_env).get_secret_value()
        opened = remote.open_address(address, origin.describe(), _request(origin, Path(), columns))
        yield converted(opened, origin.layout)
        return
    for path in _each(origin.path):
        if is_address(path):
            from tertulia.corpus.sources import remote

            remote.check_public(str(path))
            opened = remote.open_address(str(path), str(path), _request(origin, Path(), columns))
            yield converted(opened, origin.layout)
            continue
        for file, root in list_files(path):
            table = origin.layout.open(file, _request(origin, root, columns))
            name = file.name.split(".")[0] if table.source is None else table.source
            yield converted(Opened(str(file), name, file.name, table), origin.layout)


def _request(origin: Origin, root: Path, columns: frozenset[str]) -> Request:
    return Request(root, origin.encoding, origin.separator, columns)


def _each(path: object) -> Sequence[str | PathLike[str]]:
    if path is None:
        return []
    return [path] if isinstance(path, str | PathLike) else list(path)  # type: ignore[call-overload]
