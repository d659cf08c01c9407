"""Queries: rows become documents, writes are refused by the engine, and no address is ever shown."""

import gc
import json
import sqlite3
import threading
from contextlib import closing

import duckdb
import pytest

from helpers.postgres import PASSWORD, anywhere, postgres
from helpers.tables import PLAIN, tokens
from tertulia.corpus import Corpus, TextOptions, read
from tertulia.corpus.builder import DOMINANT, NAMELESS
from tertulia.corpus.readers import Source
from tertulia.corpus.recipes import read_recipe
from tertulia.corpus.report import ReadReport
from tertulia.corpus.sources.sql import digest_of
from tertulia.errors import InputError

VARIABLE = "CLINIC_DATABASE"
NOTES = """
CREATE TABLE note (note_id bigint, person_id int, note_date date, note_text text, score numeric(6, 2), scan bytea)
"""
ROWS = """
INSERT INTO note VALUES (1, 7, '2024-01-05', 'oak and elm', 1.25, NULL), (2, 7, '2024-01-06', NULL, NULL, NULL),
(3, NULL, NULL, 'fir', 2.5, NULL), (NULL, 8, '2024-01-07', 'ash, "ash" ; ash -- ash', 0, NULL)
"""
COLUMNS = {"text": "note_text", "id": "note_id", "user": "person_id", "date": "note_date", "label": "score"}
QUERY = "SELECT * FROM note ORDER BY note_date NULLS LAST;  "
WRITES = {
    "a deletion": "DELETE FROM note RETURNING note_text",
    "an insertion": "INSERT INTO note (note_text) VALUES ('x')",
    "two statements": "SELECT note_text FROM note; DELETE FROM note",
    "a second statement behind a bracket": "SELECT 1) AS x; DELETE FROM note; --",
    "a deletion in a WITH": "WITH gone AS (DELETE FROM note RETURNING *) SELECT * FROM gone",
    "a copy": "COPY note TO '{place}/stolen.csv'",
    "a new table": "CREATE TABLE t AS SELECT 1 AS note_text",
    "a sequence": "SELECT nextval('numbers')::text AS note_text",
}


@pytest.fixture(scope="module")
def server():
    with anywhere() as place, postgres(place) as running:
        running.execute(NOTES, ROWS, "CREATE SEQUENCE numbers")
        yield running


@pytest.fixture
def database(request, tmp_path, monkeypatch):
    """The same table in either engine; the address is in the environment."""
    if request.param == "postgresql":
        address = request.getfixturevalue("server").address()
    else:
        with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
            connection.execute(NOTES.replace("bytea", "blob"))
            connection.execute(ROWS)
            connection.execute("CREATE SEQUENCE numbers")
        address = f"duckdb:///{tmp_path}/clinic.duckdb"
    monkeypatch.setenv(VARIABLE, address)
    return request.param


both = pytest.mark.parametrize("database", ["duckdb", "postgresql"], indirect=True)


def count(query="SELECT count(*)::text AS note_text FROM note"):
    (row,) = rows(query)
    return row.text


def rows(query, **columns):
    source = Source(query=query, address_env=VARIABLE, **{"text": "note_text", **columns})
    return [row for _, row in source.rows(ReadReport())]


@both
def test_rows_become_documents_and_nulls_are_missing_values(database):
    corpus = read(query=QUERY, address_env=VARIABLE, options=PLAIN, **COLUMNS)
    assert tokens(corpus) == [["oak", "and", "elm"], ["ash", "ash", "ash", "ash"], ["fir"]]
    assert corpus.table["label"].to_list() == ["1.25", "0.00", "2.50"]
    assert corpus.table["user"].to_list() == ["7", "8", None]
    assert corpus.table["date"].to_list() == ["2024-01-05", "2024-01-07", None]
    assert corpus.table["id"].to_list()[::2] == ["1", "3"]
    assert len(corpus.table["id"][1]) == 16  # a hash of the text
    assert corpus.report.dropped == {"empty text": 1}
    assert corpus.report.noted[NAMELESS] == 1


@both
def test_the_record_of_a_reading_has_the_hash_of_the_query(database, tmp_path):
    query = QUERY.strip().rstrip(";")
    recipe = {"query": QUERY, "address_env": VARIABLE, **COLUMNS, "options": PLAIN.to_dict()}
    corpus = read_recipe(json.loads(json.dumps(recipe)), tmp_path / "corpus")
    assert Corpus.load(tmp_path / "corpus").report.queries == {digest_of(query): 4}
    assert f"4 rows are of the query {digest_of(query)[:23]}" in corpus.report.summary()
    assert not [path for path in tmp_path.rglob("*.json") if PASSWORD in path.read_text()]


@both
@pytest.mark.parametrize("what", WRITES)
def test_a_query_that_writes_is_refused_by_the_engine(database, what, tmp_path):
    with pytest.raises(InputError, match=r"writ|SQLSTATE|refused"):
        rows(WRITES[what].format(place=tmp_path))
    assert count() == "4"
    assert not list(tmp_path.glob("stolen*"))
    assert count("SELECT count(*)::text AS note_text FROM information_schema.tables WHERE table_name = 't'") == "0"


@both
def test_a_function_that_makes_the_transaction_writable_is_refused(database):
    with pytest.raises(InputError, match="the query failed"):
        rows("SELECT set_config('transaction_read_only', 'off', false) AS note_text")


@both
def test_columns_are_checked_before_the_first_row(database):
    with pytest.raises(
        InputError, match=r"the query has no column 'text' \(asked for by text=\).*: note_id, person_id"
    ):
        read(query=QUERY, address_env=VARIABLE)
    with pytest.raises(InputError, match="an object, or a list of other things"):
        read(query="SELECT 'oak'::bytea AS scan" if database == "postgresql" else "SELECT 'oak'::blob AS scan",
             address_env=VARIABLE, text="scan")  # fmt: skip
    with pytest.raises(InputError, match="the query is empty"):
        rows(" ; ")
    with pytest.raises(InputError, match="is empty: it holds no rows"):
        read(query="SELECT note_text FROM note WHERE false", address_env=VARIABLE, text="note_text")


@both
def test_errors_name_what_is_wrong_with_a_query_and_quote_no_document(database):
    with pytest.raises(InputError, match="nowhere") as caught:
        rows("SELECT * FROM nowhere")
    assert "one SELECT" in str(caught.value)
    with pytest.raises(InputError, match="the query failed") as caught:
        rows("SELECT note_text::int AS note_text FROM note")
    assert "oak" not in str(caught.value)
    assert caught.value.__suppress_context__


@both
def test_a_comment_or_a_quoted_name_does_no_harm(database):
    assert count('SELECT count(*)::text AS "note_text" FROM note -- all of them') == "4"
    (row,) = rows('SELECT note_text, 1 AS "a ""b" FROM note WHERE note_id = 1', label='a "b')
    assert (row.text, row.label) == ("oak and elm", "1")


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("postgresql://postgres:wr0ng-one@127.0.0.1:{port}/postgres", "the user or the password is wrong"),
        ("postgresql://postgres:half@s3cr3t@127.0.0.1:{port}/postgres", "write special characters of a password"),
        ("postgresql://postgres:sl/ash@127.0.0.1:{port}/postgres", "check host, port, user"),
        ("postgresql://postgres:s3cret%2F%40x@127.0.0.1:{port}/nothing", "there is no such database"),
        ("postgresql://postgres:s3cr3t@127.0.0.1:1/postgres", "no server listens"),
        ("host=127.0.0.1 password=s3cr3t", "has no scheme"),
        ("oracle://ana:s3cr3t@127.0.0.1/x", "whose read-only mode is not known here"),
    ],
)
def test_no_error_of_a_connection_shows_an_address(server, address, cause, monkeypatch):
    monkeypatch.setenv(VARIABLE, address.format(port=server.port))
    with pytest.raises(InputError, match=cause) as caught:
        rows("SELECT 1")
    assert not any(part in str(caught.value) for part in ("s3cr", "wr0ng", "half", "/ash", "sl/"))
    assert VARIABLE in str(caught.value) or "package" in str(caught.value)


def test_a_variable_is_named_and_never_holds_the_address_itself(monkeypatch):
    with pytest.raises(InputError, match="environment variable CLINIC_DATABASE is not set"):
        rows("SELECT 1")
    with pytest.raises(InputError, match="name of an environment variable") as caught:
        Source(query="SELECT 1", address_env="postgresql://ana:s3cr3t@host/db")
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(InputError, match="takes the place of a path"):
        Source("notes.csv", address_env=VARIABLE)
    with pytest.raises(InputError, match="nothing says where"):
        Source()


def test_duckdb_reads_files_that_the_query_names_and_files_of_its_own(tmp_path):
    (tmp_path / "notes.csv").write_text("day,body\n2024,oak\n2025,elm\n")
    found = read(query=f"SELECT body AS text FROM '{tmp_path}/notes.csv' WHERE day > 2024", options=PLAIN)
    assert tokens(found) == [["elm"]]
    with duckdb.connect(str(tmp_path / "own.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'fir' AS text")
    assert tokens(read(tmp_path / "own.db", query="SELECT * FROM t", options=PLAIN)) == [["fir"]]
    with pytest.raises(InputError, match="cannot be opened to read"):
        read(tmp_path / "absent.db", query="SELECT * FROM t")


def test_sqlite_is_read_and_not_written(tmp_path, monkeypatch):
    with closing(sqlite3.connect(tmp_path / "own.sqlite")) as connection:
        connection.execute("CREATE TABLE note (note_text)")
        connection.execute("INSERT INTO note VALUES ('oak')")
        connection.commit()
    monkeypatch.setenv(VARIABLE, f"sqlite:///{tmp_path}/own.sqlite")
    assert [row.text for row in rows("SELECT * FROM note")] == ["oak"]
    for query in ("INSERT INTO note VALUES ('elm') RETURNING note_text", "SELECT 1) AS x; DELETE FROM note; --"):
        with pytest.raises(InputError, match="the query"):  # of two statements the driver runs the first
            rows(query)
    assert [row.text for row in rows("SELECT * FROM note")] == ["oak"]


@pytest.mark.parametrize("how", ["the session is ended", "the server is gone"])
def test_nothing_half_read_remains_if_the_database_goes_away(how, tmp_path, monkeypatch):
    with anywhere() as place, postgres(place) as server:
        monkeypatch.setenv(VARIABLE, server.address())
        query = "SELECT 'oak number ' || i || repeat(' elm', 500) AS text FROM generate_series(1, 100000) AS i"
        seen = 0

        def cut(text, *rest):
            nonlocal seen
            seen += 1
            if seen == 3:
                if how == "the server is gone":
                    server.kill()
                else:
                    other = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%'"
                    threading.Thread(target=server.execute, args=(other,)).start()
            return [[["oak"]]]

        monkeypatch.setattr("tertulia.corpus.builder.sentences", lambda *a, **k: cut(*a))
        with pytest.raises(InputError, match=r"after row \d+; nothing that was read is used"):
            read_recipe({"query": query, "address_env": VARIABLE, "options": PLAIN.to_dict()}, tmp_path / "corpus")
        assert 3 <= seen < 100_000
        assert list((tmp_path / "corpus").glob("*")) == []
        gc.collect()


def test_one_patient_with_all_rows_is_noted():
    query = "SELECT 'p1' AS patient, 'oak number ' || i AS text FROM range(2000) AS t(i)"
    corpus = read(query=query, user="patient", options=TextOptions())
    assert corpus.report.noted[DOMINANT] == 2000
