"""SQL: the rows of a query are documents. DuckDB is embedded; PostgreSQL and others are reached through ADBC.

A query that writes is refused twice, each time by the engine. It stands in `SELECT * FROM (...)`, which no engine
parses unless it is one SELECT. And the transaction, or the file of DuckDB, is read-only, so that functions that the
SELECT calls cannot write either.

Drivers quote parts of addresses, and of documents, in their errors. Therefore their texts are not passed on, except
those about the query itself, which are about names and syntax.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple

from pydantic import SecretStr

from tertulia.corpus.formats.base import Record, Table
from tertulia.corpus.sources.base import Opened, Origin, address_in
from tertulia.errors import InputError

_BATCH = 2_000  # rows of DuckDB; a driver of ADBC chooses its own
_READ_ONLY = {  # by scheme, the statement that makes all later transactions of a connection read-only
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    "sqlite": "PRAGMA query_only = ON",
}
_SAME = {"postgres": "postgresql"}  # another spelling of a scheme
_WRITES = "25006"  # SQLSTATE of a write in a read-only transaction
_READ_ONLY_ERRORS = ("read-only transaction", "readonly database")  # in errors that come while rows are read
_CAUSES = (  # parts of PostgreSQL's messages, and what they mean
    ("password authentication failed", "the user or the password is wrong"),
    ("no password supplied", "the address has no password"),
    ("no pg_hba.conf entry", "the server does not admit this machine, user and database"),
    ("Connection refused", "no server listens at this host and port"),
    ("could not translate host name", "the host's name is unknown; write special characters of a password as %XX"),
    ("timeout expired", "the server does not answer"),
    ("does not exist", "there is no such database or user"),
)
_HELP = "it must be one SELECT, without a semicolon; a query that writes is refused"
_WRITING = "it writes, and the connection is read-only: a query that writes is refused"
_Run = Callable[[str], Any]  # gives a reader of Arrow batches


class _Engine(NamedTuple):
    """A connection that runs queries, and the function that words its errors without addresses or documents."""

    run: _Run
    explain: Callable[[Exception], str]


def open_query(origin: Origin, wanted: frozenset[str]) -> Opened:
    """Open the rows of a query; nothing but its columns is asked for before the first row is."""
    query = (origin.query or "").strip().rstrip(";").rstrip()
    if not query:
        raise InputError("the query is empty: write a SELECT that gives a column of texts")
    inner = f"(\n{query}\n) AS documents"
    with _connected(origin, 0) as engine:
        reader = engine.run(f"SELECT * FROM {inner} LIMIT 0")  # noqa: S608 - the query is the party's own
        columns = tuple(reader.schema.names)
        _close(reader)
    used = [name for name in columns if name in wanted]

    def records() -> Iterator[Record]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in used)
        number = 0
        with _connected(origin, lambda: number) as engine:
            reader = engine.run(f"SELECT {quoted} FROM {inner}")  # noqa: S608
            try:
                for values in _rows(reader):
                    number += 1
                    yield Record(f"query: row {number}", values)
            finally:
                _close(reader)

    return Opened("the query", "query", "query", Table(columns, records(), query=digest_of(query)))


def digest_of(query: str) -> str:
    """Return the hash by which a party's record knows a query."""
    return f"sha256:{hashlib.sha256(query.encode()).hexdigest()}"


def _rows(reader: Any) -> Iterator[dict[str, Any]]:
    import polars as pl

    for batch in reader:
        frame = pl.from_arrow(batch)
        assert isinstance(frame, pl.DataFrame)
        yield from frame.iter_rows(named=True)


def _close(reader: Any) -> None:
    with suppress(Exception):  # a broken connection cannot even be closed
        reader.close()


@contextmanager
def _connected(origin: Origin, read: int | Callable[[], int]) -> Iterator[_Engine]:
    """Connect to the database while the block runs; word errors without addresses or documents."""
    scheme, opened = _engine_of(origin)
    explain: Callable[[Exception], str] = str
    try:
        with opened as engine:
            explain = engine.explain
            yield engine
    except InputError:
        raise
    except _driver_errors(scheme) as error:
        rows = read if isinstance(read, int) else read()
        after = f" after row {rows}; nothing that was read is used" if rows else ""
        raise InputError(f"the query failed{after}: {explain(error)}") from None


def _engine_of(origin: Origin) -> tuple[str, AbstractContextManager[_Engine]]:
    """Choose the engine by the scheme of the address; without an address, DuckDB."""
    variable = origin.address_env
    if variable is None:
        return "duckdb", _duckdb(":memory:" if origin.path is None else str(origin.path))
    address = address_in(variable)
    scheme = _scheme(address, variable)
    return scheme, _duckdb(_file_in(address)) if scheme == "duckdb" else _adbc(scheme, address, variable)


def _scheme(address: SecretStr, variable: str) -> str:
    found = re.match(r"([a-z]+)[a-z+]*:", address.get_secret_value())
    if found is None:
        raise InputError(
            f"the address in {variable} has no scheme: write it as postgresql://USER:PASSWORD@HOST/DATABASE or "
            "duckdb:///PATH"
        )
    return _SAME.get(found[1], found[1])


def _file_in(address: SecretStr) -> str:
    """Return the path in an address of a file: `duckdb:///clinic/notes.duckdb`."""
    return address.get_secret_value().split(":", 1)[1].removeprefix("//")


def _driver_errors(scheme: str) -> tuple[type[Exception], ...]:
    from polars.exceptions import PolarsError

    found: list[type[Exception]] = [OSError, ValueError, PolarsError]
    with suppress(ImportError):
        found.append(importlib.import_module("pyarrow").ArrowException)
        if scheme == "duckdb":
            found.append(importlib.import_module("duckdb").Error)
        else:
            found.append(importlib.import_module("adbc_driver_manager").Error)
    return tuple(found)


@contextmanager
def _duckdb(file: str) -> Iterator[_Engine]:
    """Open a file of DuckDB to read, or an empty database in memory; no extension is loaded from elsewhere."""
    duckdb = _module("duckdb")
    _module("pyarrow")
    with tempfile.TemporaryDirectory(prefix="tertulia-query-") as spill:
        config = {
            "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "temp_directory": spill,
        }  # fmt: skip
        try:
            connection = duckdb.connect(file, read_only=file != ":memory:", config=config)
        except duckdb.Error as error:
            raise InputError(
                f"the DuckDB file cannot be opened to read ({type(error).__name__}): check its path, and that no "
                "other program has it open to write"
            ) from None

        def explain(error: Exception) -> str:
            if "read-only mode" in str(error):
                return _WRITING
            shown = isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException)
            return _worded(_first_line(error) if shown else error)

        try:

            def run(statement: str) -> Any:
                found = connection.extract_statements(statement)
                if [one.type for one in found] != [duckdb.StatementType.SELECT]:
                    raise InputError(f"the query is refused: {_HELP}")
                return connection.sql(statement).to_arrow_reader(_BATCH)

            yield _Engine(run, explain)
        finally:
            connection.close()


@contextmanager
def _adbc(scheme: str, address: SecretStr, variable: str) -> Iterator[_Engine]:
    """Connect through the driver of a scheme, in a read-only transaction."""
    if scheme not in _READ_ONLY:
        raise InputError(
            f"the address in {variable} is of {scheme}, whose read-only mode is not known here: use "
            f"{', '.join(_READ_ONLY)} or duckdb, or export the documents to Parquet"
        )
    manager, driver = _module("adbc_driver_manager"), _module(f"adbc_driver_{scheme}.dbapi")
    _module("pyarrow")
    try:
        connection = driver.connect(address.get_secret_value() if scheme == "postgresql" else _file_in(address))
    except (manager.Error, ValueError, OSError) as error:
        raise InputError(f"cannot connect to the database whose address is in {variable}: {_cause(error)}") from None
    try:
        with connection.cursor() as cursor:
            cursor.execute(_READ_ONLY[scheme])
            connection.commit()

            def run(sql: str) -> Any:
                cursor.execute(sql)
                return cursor.fetch_record_batch()

            yield _Engine(run, _adbc_cause)
    finally:
        with suppress(manager.Error):
            connection.close()


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.split(".")[0].replace("_", "-")
        raise InputError(f"this source needs the package {package}: pip install 'tertulia[sql]' {package}") from error


def _cause(error: Exception) -> str:
    """Name the cause of a failed connection; the driver's own text may quote the address."""
    found = next((meaning for part, meaning in _CAUSES if part in str(error)), "")
    return found or f"{type(error).__name__}; check host, port, user, password and database with another program"


def _adbc_cause(error: Exception) -> str:
    """Word an error of a query: the server's message if it is about the query, else only its SQLSTATE."""
    state = str(getattr(error, "sqlstate", None) or "")
    if state == _WRITES or any(part in str(error) for part in _READ_ONLY_ERRORS):
        return _WRITING
    if state.startswith("42"):  # syntax, names and rights
        details = dict(getattr(error, "details", None) or [])
        message = details.get(b"PG_DIAG_MESSAGE_PRIMARY", b"").decode("utf-8", "replace")
        return _worded(message or f"SQLSTATE {state}")
    if state:
        return f"the database reports SQLSTATE {state}; run the query with another program to see more"
    return f"the connection to the database was lost ({type(error).__name__}), or the driver refuses the query"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _worded(cause: object) -> str:
    if isinstance(cause, Exception):
        return f"{type(cause).__name__}; run the query with another program to see more"
    return f"{cause}; {_HELP}"
