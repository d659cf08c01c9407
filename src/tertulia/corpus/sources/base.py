"""The origin of documents, and what opening it gives."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import SecretStr

from tertulia.corpus.formats import open_table
from tertulia.corpus.formats.base import Record, Request, Table
from tertulia.errors import InputError

PathLike = str | os.PathLike[str]
SCHEMES = ("http", "https", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "hf")
DUCKDB_FILES = (".duckdb", ".ddb", ".db")
VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"  # the name of an environment variable


def is_address(path: object) -> bool:
    """Return whether a path is an address.

    >>> is_address("https://example.org/notes.parquet"), is_address("notes.parquet"), is_address("C:/notes.csv")
    (True, False, False)
    """
    return isinstance(path, str) and "://" in path and path.split("://")[0].lower() in SCHEMES


def is_database(path: object) -> bool:
    """Return whether a path is that of a file of DuckDB, by its suffix."""
    return isinstance(path, str | os.PathLike) and Path(path).suffix.lower() in DUCKDB_FILES


class Layout(NamedTuple):
    """The columns of a known kind of records, and how to get them."""

    columns: Mapping[str, str | tuple[str, ...]]  # by argument: text, id, date, label, user
    query: str | None = None  # of a database that has such records
    open: Callable[[Path, Request], Table] = open_table  # a file
    convert: Callable[[Record], Record] | None = None  # a record to one with the columns `gives`
    marks: tuple[str, ...] = ()  # columns of which such a file has at least one
    raw: tuple[str, ...] = ()  # columns that `convert` reads
    gives: tuple[str, ...] = ()
    hint: str = ""  # what it reads, added to errors


class Origin(NamedTuple):
    """The place of documents, and the options to open it."""

    path: PathLike | Sequence[PathLike] | None = None
    query: str | None = None  # of a database
    address_env: str | None = None  # name of the environment variable with the address of the database, or of a file
    encoding: str | None = None
    separator: str | None = None
    layout: Layout = Layout({})

    def describe(self) -> str:
        """Name the origin in errors."""
        if self.query is not None:
            return "the query"
        if self.address_env is not None:
            return f"the file whose address is in {self.address_env}"
        given = isinstance(self.path, str | os.PathLike) or self.path is None
        return os.fspath(self.path or "") if given else f"the {len(self.path)} given files"  # type: ignore[arg-type]


class Opened(NamedTuple):
    """An open table, with its names."""

    name: str  # in errors
    source: str  # the party's name in a split by file
    short: str  # in reports
    table: Table


def check_variable(name: str) -> str:
    """Return the name of an environment variable; raise `ValueError` without the value, which may be an address."""
    if not re.fullmatch(VARIABLE, name):
        raise ValueError(
            "write the name of an environment variable, such as CLINIC_DATABASE, and the address into the variable"
        )
    return name


def address_in(variable: str) -> SecretStr:
    """Read an address, which may hold a password, from the environment."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(
            f"the environment variable {variable} is not set: put the address of the documents there, such as "
            "postgresql://USER:PASSWORD@HOST/DATABASE, or https://HOST/FILE.parquet without a query"
        )
    return SecretStr(value)
