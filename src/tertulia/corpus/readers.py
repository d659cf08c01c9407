"""Readers of files: they make a `Corpus`, and a report that counts every row that was dropped.

Sentence embeddings that were computed elsewhere are in a file of their own, with one row for each row of the documents:

| file | what is read |
|---|---|
| `.npy` | the array |
| `.npz`, `.safetensors` | the array `embeddings`, or the only one |
"""

from __future__ import annotations

import codecs
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import safetensors
from safetensors.numpy import load_file

from tertulia._arrays import F32, Array
from tertulia.corpus.builder import NAMELESS, WORDLESS, Builder, text_id
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.formats.base import EMPTY, Record, undecodable
from tertulia.corpus.inputs import string_or_none
from tertulia.corpus.report import ReadReport
from tertulia.corpus.sources import Opened, Origin, open_tables
from tertulia.corpus.sources.base import PathLike, check_variable, is_database
from tertulia.corpus.sources.layouts import layout_of
from tertulia.corpus.splits import Assignment, Row
from tertulia.corpus.tokens import TextOptions
from tertulia.errors import InputError

OTHER_PARTY = "belongs to another party"
_NAMED = {"tab": "\t", "\\t": "\t"}  # spellings on a command line


@dataclass(frozen=True)
class Source:
    """The files to read, or the query to run, and the columns to use.

    `path` is a file (.jsonl, .csv, .tsv, .parquet, .txt; also .gz, .bz2, .xz), a folder of .txt files, a pattern
    (`notes/*.jsonl`) or a list of these. Several text columns are joined, each as a paragraph. Texts from a folder have
    the columns `text`, `path` and `folder`. A text that is a list of words (in JSON lines and Parquet) stays as it is.
    Without an id column, the id of a row is a hash of its text, and that of a text file is its path.

    A `query` gives the rows of a database: the one whose address is in the environment variable `address_env`, or the
    DuckDB file `path`. Without both, DuckDB reads the files that the query itself names. Without a query, the address
    is that of a file. A `format` other than `table` names a known kind of records, and gives the columns.
    """

    path: PathLike | Sequence[PathLike] | None = None
    text: str | Sequence[str] = "text"
    id: str | None = None
    date: str | None = None
    label: str | None = None
    user: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)  # only rows with these values
    encoding: str | None = None  # None: UTF-8, unless the file looks different; guesses are in the report
    separator: str | None = None  # of CSV fields; None: the one that gives the requested columns
    every_row: bool = False  # make an empty document of a row without a usable text, so that results match rows
    query: str | None = None
    address_env: str | None = None
    format: str = "table"

    def __post_init__(self) -> None:
        self._check_origin()
        try:
            known_as = None if self.encoding is None else codecs.lookup(self.encoding).name
        except LookupError as error:
            raise InputError(f"encoding '{self.encoding}' is unknown: try 'utf-8', 'cp1252' or 'utf-16'") from error
        object.__setattr__(self, "encoding", known_as)
        separator = _NAMED.get(self.separator or "", self.separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise InputError(f"separator = {separator!r}: give one character, such as ';', or 'tab'")
        object.__setattr__(self, "separator", separator)

    def _check_origin(self) -> None:
        layout = layout_of(self.format)
        if self.query is None and layout.query is not None and (self.address_env or is_database(self.path)):
            object.__setattr__(self, "query", layout.query)
        for argument, usual in (("text", "text"), *((name, None) for name in ("id", "date", "label", "user"))):
            if argument in layout.columns and getattr(self, argument) == usual:
                object.__setattr__(self, argument, layout.columns[argument])
        if self.path is None and self.query is None and self.address_env is None:
            raise InputError("nothing says where the documents are: give a path, or a query")
        if self.address_env is None:
            return
        try:
            check_variable(self.address_env)
        except ValueError as error:
            raise InputError(f"address_env: {error}") from None
        if self.path is not None:
            raise InputError(f"address_env = '{self.address_env}' takes the place of a path: leave one out")

    @property
    def origin(self) -> Origin:
        """The place of the documents."""
        layout = layout_of(self.format)
        return Origin(self.path, self.query, self.address_env, self.encoding, self.separator, layout)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The names of the text columns."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def rows(self, report: ReadReport, extra_columns: Sequence[str] = ()) -> Iterator[tuple[str, Row]]:
        """Stream the usable rows with their places; count the others in the report."""
        wanted = self._wanted(extra_columns)
        for opened in open_tables(self.origin, wanted):
            table, rows = opened.table, 0
            if table.columns:
                _check_columns(opened, wanted)
            for guess in table.guesses:
                report.guess(guess, opened.short)
            for record in table.records:
                rows += 1
                row, problem = (
                    (None, record.problem)
                    if record.problem
                    else self._row(record, opened.source, table.encoding, extra_columns)
                )
                if row is None and self.every_row and problem != EMPTY and self._is_wanted(record):
                    report.note(problem, record.place)
                    known_as = self._name(record)
                    row = Row(known_as if known_as and _encodable(known_as) else record.place, "")
                if row is None:
                    report.drop(problem, record.place)
                else:
                    yield record.place, row
            if table.query is not None:
                report.queries[table.query] = report.queries.get(table.query, 0) + rows

    def _wanted(self, extra_columns: Sequence[str]) -> dict[str, str]:
        """Map each column to the argument that requests it."""
        named = {"id": self.id, "date": self.date, "label": self.label, "user": self.user}
        return {
            **dict.fromkeys(extra_columns, "parties"),
            **dict.fromkeys(self.where, "where"),
            **{column: argument for argument, column in named.items() if column is not None},
            **dict.fromkeys(self.text_columns, "text"),
        }

    def _row(self, record: Record, source: str, encoding: str, extra_columns: Sequence[str]) -> tuple[Row | None, str]:
        """Make a row, or give the reason why there is none."""
        values = record.values
        if not self._is_wanted(record):
            return None, f"not {', '.join(f'{column} = {value}' for column, value in self.where.items())}"
        texts = [values.get(column) for column in self.text_columns]
        tokens = texts[0] if len(texts) == 1 and _are_tokens(texts[0]) else None
        if tokens is None and any(isinstance(text, list | dict | bytes) for text in texts):
            return None, "text is an object, or a list of other things than words"
        text = "\n\n".join(part for part in map(string_or_none, texts) if part) if tokens is None else " ".join(tokens)
        if not text.strip():
            return None, "empty text"
        columns = (self.label, self.date, self.user)
        label, date, user = (None if name is None else string_or_none(values.get(name)) for name in columns)
        name = self._name(record)
        others = {column: string_or_none(values.get(column)) for column in extra_columns}
        if not all(map(_encodable, (text, name, label, date, user, *others.values()))):
            return None, undecodable(encoding)
        return Row(name or text_id(text), text, label, date, source, others, user, tokens), ""

    def _is_wanted(self, record: Record) -> bool:
        return all(string_or_none(record.values.get(column)) == value for column, value in self.where.items())

    def _name(self, record: Record) -> str | None:
        """Return the id of a row; None if neither a column nor the file gives one."""
        return record.name if self.id is None else string_or_none(record.values.get(self.id))


class SourceFields(TypedDict, total=False):
    """Keyword arguments of `read`: the fields of `Source` except the path, and `keep_places` of `Builder`."""

    text: str | Sequence[str]
    id: str | None
    date: str | None
    label: str | None
    user: str | None
    where: Mapping[str, str]
    encoding: str | None
    separator: str | None
    every_row: bool
    query: str | None
    address_env: str | None
    format: str
    keep_places: bool
    column: str | Sequence[str] | None


def read(
    path: PathLike | Sequence[PathLike] | None = None,
    *,
    options: TextOptions | None = None,
    directory: PathLike | None = None,
    parties: Assignment | None = None,
    party: str | None = None,
    keep_text: bool = False,
    embeddings: PathLike | None = None,
    **columns: Unpack[SourceFields],
) -> Corpus:
    """Read documents from files or a database; `path`, `query` and the columns are described at `Source`.

    | argument | meaning |
    |---|---|
    | `column`, or `text` | the column of the text, or several, which are joined (default "text") |
    | `id`, `date`, `label`, `user` | the columns of ids, dates, labels and users, if there are any |
    | `where` | only rows with these values, by column |
    | `encoding`, `separator` | of text files, and of CSV fields (default: guessed, and noted in the report) |
    | `keep_places` | words that a given stop list removes become `<unk>`, as at a party of a federation |
    | `every_row` | a row whose text is missing, empty or broken becomes an empty document instead of being dropped |

    With a `directory`, the corpus is built there and mapped into memory: only the list of distinct words and the table
    of ids are held in memory. With `parties` and `party`, only that party's rows are kept. For models that read
    sentences, `keep_text` keeps the texts in the table, or `embeddings` names a file (.npy, .npz, .safetensors) of
    vectors, one for each row that is read.

        corpus = read("notes.csv", text=["title", "body"], id="note_id", label="ward")
        print(corpus.report.summary())
    """
    keep_places = columns.pop("keep_places", False)
    source = Source(path, **_source_fields(columns))
    if (parties is None) != (party is None):
        raise InputError("give parties= (the rule) and party= (whose rows to keep) together")
    if parties is not None and parties.parties and party not in parties.parties:
        raise InputError(f"party '{party}' is none of {', '.join(parties.parties)}")
    report, elsewhere, places = ReadReport(), 0, []
    vectors = None if embeddings is None else read_embeddings(embeddings)
    with closing(Builder(options, directory, keep_text, keep_places)) as builder:
        for place, row in _assignable(source, report, parties):
            if parties is None or parties(row) == party:
                places.append(report.rows + elsewhere)
                _add(builder, report, place, row, source.user is not None)
            else:
                elsewhere += 1
        report.drop(OTHER_PARTY, count=elsewhere)
        _check_rows(source, report)
        if vectors is not None and embeddings is not None:
            builder.embeddings = rows_of(vectors, places, report.rows, embeddings, source.origin.describe())
        return builder.finish(report)


def _source_fields(columns: SourceFields) -> dict[str, Any]:
    """Return the fields of `Source`; `column` is another name of `text`."""
    fields: dict[str, Any] = dict(columns)
    column = fields.pop("column", None)
    return fields if column is None else fields | {"text": column}


def _assignable(source: Source, report: ReadReport, parties: Assignment | None) -> Iterator[tuple[str, Row]]:
    if parties is None:
        return source.rows(report)
    if parties.needs_label and source.label is None:
        raise InputError("this split goes by label: name the column with label=...")
    return source.rows(report, parties.columns)


def _add(builder: Builder, report: ReadReport, place: str, row: Row, users: bool) -> None:
    report.keep()
    if users and not (row.user or "").strip():
        report.examples.setdefault(NAMELESS, place)  # the builder counts them
    text = row.text if row.tokens is None else row.tokens
    if not builder.add(row.id, text, row.label, row.date, row.user) and row.text:
        report.note(WORDLESS, place)


def _check_columns(opened: Opened, wanted: Mapping[str, str]) -> None:
    table = opened.table
    for column, argument in wanted.items():
        if column not in table.columns:
            raise InputError(
                f"{opened.name} has no column '{column}' (asked for by {argument}=). "
                f"Its columns are: {', '.join(table.columns)}.{table.hint}"
            )


def _check_rows(source: Source, report: ReadReport) -> None:
    name, encoding = source.origin.describe(), source.encoding or "utf-8"
    broken = report.dropped.get(undecodable(encoding), 0) + report.noted.get(undecodable(encoding), 0)
    if broken > report.rows // 2:
        raise InputError(
            f"{broken} of {report.rows} rows of {name} are not {encoding.upper()}: name the real encoding "
            "with encoding=... (old Windows files are often 'cp1252')"
        )
    if not report.kept and set(report.dropped) <= {EMPTY}:
        raise InputError(f"{name} is empty: it holds no rows")
    if not report.kept:
        raise InputError(f"{name} holds no usable row: {report.summary()}")


def _are_tokens(value: Any) -> bool:
    """Return whether a cell is a list of words, as JSON lines and Parquet can hold."""
    return isinstance(value, list) and all(isinstance(token, str) and token for token in value)


def _encodable(value: str | None) -> bool:
    if value is None or value.isascii():
        return True
    try:
        value.encode("utf-8")  # raises on the lone surrogates that stand for undecodable bytes
    except UnicodeEncodeError:
        return False
    return True


def read_embeddings(path: str | os.PathLike[str]) -> F32:
    """Read sentence embeddings [rows, E] from a file."""
    file = Path(path)
    try:
        found = _arrays(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, safetensors.SafetensorError) as error:
        raise InputError(f"the embeddings {file} cannot be read ({error}): check the path and the format") from error
    array = found.get("embeddings") if len(found) > 1 else next(iter(found.values()), None)
    if array is None:
        raise InputError(f"{file} holds the arrays {sorted(found)}: name the one with the vectors `embeddings`")
    if array.ndim != 2 or array.shape[1] == 0 or not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{file} holds {array.dtype} {array.shape}: embeddings are floats [documents, dimensions]")
    return np.ascontiguousarray(array, np.float32)


def _arrays(file: Path) -> dict[str, Array]:
    if file.suffix == ".npy":
        return {"embeddings": np.load(file, allow_pickle=False)}
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    if file.suffix == ".safetensors":
        return dict(load_file(file))
    raise InputError(f"embeddings {file}: the file must be .npy, .npz or .safetensors")


def rows_of(vectors: F32, places: list[int], rows: int, path: str | os.PathLike[str], documents: str) -> F32:
    """Select the vectors of the rows that became documents, by their places among all rows that were read."""
    if len(vectors) != rows:
        raise InputError(
            f"{os.fspath(path)} has {len(vectors)} rows, but {documents} has {rows} "
            "(empty ones included): give one for each, in the same order"
        )
    return vectors[np.array(places, np.int64)]
