"""Documents in memory, converted to a corpus: texts, lists of tokens, dicts, a table of any library, or a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tertulia.corpus.builder import from_texts
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.tokens import TextOptions
from tertulia.errors import InputError

Documents = Any  # texts, lists of tokens, dicts, a table of pandas, polars or `datasets`, counts, or a Corpus
_LIKELY = {"texts", "document", "documents", "content", "body", "abstract", "message", "sentence", "review", "note"}


def as_corpus(
    party: str | None,
    documents: Documents,
    options: TextOptions | None = None,
    keep_text: bool = False,
    keep_places: bool = False,
) -> Corpus:
    """Convert a user's or a party's documents to a corpus; document i is text i or row i, a missing text is empty.

    Documents are a sequence of texts, lists of tokens or dicts; a table (of pandas, polars, `datasets` or pyarrow, or a
    dict of columns); or a corpus. Tables and dicts have their texts in `text`, unless `with_column` names another
    column. With `keep_places`, words that a given list removes become `<unk>`, as at a party of a federation.
    """
    whose = f" of party '{party}'" if party else ""
    if isinstance(documents, Corpus):
        return documents
    _check_kind(documents, whose)
    how: dict[str, Any] = {"options": options or TextOptions(), "keep_text": keep_text, "keep_places": keep_places}
    documents = materialise(documents)
    if (names := columns_or_none(documents)) is not None:
        return _from_table({name: documents[name] for name in names}, whose, how)
    rows = list(documents)
    if isinstance(_first(rows), Mapping):
        return _from_table(_columns(rows), whose, how)
    return from_texts(_texts(rows, whose), **how)


def _check_kind(documents: Documents, whose: str) -> None:
    """Raise `InputError` for what users may give in place of documents: one text, a path, nothing."""
    if isinstance(documents, str | bytes):
        raise InputError(f"the texts{whose} are one string: write [text] for a single text, or `tt.read(path)`")
    if isinstance(documents, os.PathLike):
        raise InputError(f"the documents{whose} are a path: `tt.read({str(documents)!r})` reads the file")
    if not (hasattr(documents, "__iter__") or hasattr(documents, "__getitem__") or hasattr(documents, "collect")):
        kind = "None" if documents is None else f"of type {type(documents).__name__}"
        raise InputError(f"the documents{whose} are {kind}: give a list of texts, or a table with a column 'text'")


def materialise(documents: Documents) -> Documents:
    """Evaluate generators and lazy frames of polars, so that documents can be read more than once."""
    if isinstance(documents, Iterator):
        return list(documents)
    if hasattr(documents, "collect_schema") and hasattr(documents, "collect"):
        return documents.collect()
    return documents


def columns_or_none(documents: Documents) -> list[Any] | None:
    """Return the names of the columns if documents are a table; `documents[name]` then is a column.

    >>> columns_or_none({"text": ["Rain fell."], "id": [7]}), columns_or_none(["Rain fell."])
    (['text', 'id'], None)
    """
    names = getattr(documents, "column_names", None)  # of `datasets` and pyarrow, whose `columns` are not names
    if isinstance(names, Mapping):
        raise InputError(f"these are several tables, {', '.join(names)}: give one, such as documents['train']")
    if names is None:
        names = documents if isinstance(documents, Mapping) else getattr(documents, "columns", None)
    return None if names is None else list(names)


class RenamedTable:
    """A table of which some columns have other names than the ones that are read: `text`, `label`, `date`."""

    def __init__(self, table: Any, renamed: Mapping[str, str]) -> None:
        self._table, self._renamed = table, dict(renamed)
        left_out = {*renamed, *renamed.values()}
        self.columns = [*renamed, *(name for name in columns_or_none(table) or () if name not in left_out)]
        if hasattr(table, "iloc"):
            self.iloc, self.index = table.iloc, table.index  # rows of pandas keep their index

    def __getitem__(self, name: str) -> Any:
        return self._table[self._renamed.get(name, name)]


def with_column(documents: Documents, column: str | None, **others: str | None) -> Documents:
    """Take the texts of a table, or of dicts, from this column, and `label`, `date`, ... from `others`.

    >>> as_corpus(None, with_column([{"body": "Rain fell."}, {"body": "Rivers rose."}], "body"))
    Corpus(2 documents, 4 tokens, 4 words)
    """
    documents = materialise(documents)
    renamed = {what: name for what, name in {"text": column, **others}.items() if name is not None}
    if not renamed:
        return documents
    what, name = next(iter(renamed.items()))
    if isinstance(documents, Corpus) and column is None:
        return _with_names(documents, renamed)
    names = columns_or_none(documents)
    if names is None:
        table = None if isinstance(documents, Corpus) else table_of_rows(documents)
        if table is None:
            what = "column" if what == "text" else what
            raise InputError(f"{what} = '{name}': only tables and lists of dicts have columns; leave it out")
        documents, names = table, list(table)
    if missing := [name for name in renamed.values() if name not in names]:
        raise InputError(f"the table has no column '{missing[0]}', only {names}: name one of them")
    return RenamedTable(documents, renamed)


def _with_names(corpus: Corpus, renamed: Mapping[str, str]) -> Corpus:
    """Give columns of a corpus's table the names that are read; a corpus has only ids, labels, dates and users."""
    if missing := [name for name in renamed.values() if name not in corpus.table.columns]:
        raise InputError(f"the corpus has no column '{missing[0]}', only {corpus.table.columns}: name one of them")
    columns = {what: corpus.table[name] for what, name in renamed.items()}
    return replace(corpus, table=corpus.table.with_columns(**columns))


def table_of_rows(documents: Documents) -> dict[str, list[Any]] | None:
    """Turn a list of dicts into a dict of columns; None if documents are something else."""
    rows = [] if isinstance(documents, str | bytes) or not hasattr(documents, "__iter__") else list(documents)
    return _columns(rows) if isinstance(_first(rows), Mapping) else None


def _first(rows: list[Any]) -> Any:
    """Return the first row that is not missing."""
    return next((row for row in rows if not is_missing(row)), "")


def _columns(rows: list[Any]) -> dict[str, list[Any]]:
    """Turn rows that are dicts into columns; absent keys become None."""
    names = dict.fromkeys(str(name) for row in rows if isinstance(row, Mapping) for name in row)
    return {name: [row.get(name) if isinstance(row, Mapping) else None for row in rows] for name in names}


def _from_table(table: Mapping[str, Iterable[Any]], whose: str, how: Mapping[str, Any]) -> Corpus:
    """Make a corpus of the columns of a table."""
    if "text" not in table:
        likely = [known for known in table if str(known).lower() in _LIKELY]
        remedy = f"write column='{likely[0]}'" if likely else "write column='...', or rename one"
        raise InputError(f"the table{whose} has no column 'text', only {list(table)}: {remedy}")
    rows = [cell if _tokens_or_none(cell) is not None else string_or_none(cell) for cell in cells(table["text"])]
    texts = _texts(rows, whose)
    found: dict[str, Any] = {
        f"{known}s": _strings(table[known]) for known in ("id", "label", "date", "user") if known in table
    }
    return from_texts(texts, **found, **how)


def _texts(rows: list[Any], whose: str) -> list[Any]:
    """Return texts, or lists of tokens, with missing ones empty."""
    tokens = [_tokens_or_none(row) for row in rows]
    if all(own is None for own in tokens):
        return ["" if is_missing(row) else row for row in rows]
    for number, (row, own) in enumerate(zip(rows, tokens, strict=True)):
        if own is None and not is_missing(row):
            raise InputError(f"document {number}{whose} is no list of words, as others are: give all as lists")
    return [own or [] for own in tokens]


def _tokens_or_none(row: Any) -> list[Any] | None:
    """Return the tokens of a document that is a list, or an array or series, as in columns of lists."""
    if isinstance(row, list | tuple):
        return list(row)
    if isinstance(row, str) or np.ndim(row) != 1:
        return None
    return list(row.tolist() if hasattr(row, "tolist") else row)


def cells(column: Any) -> list[Any]:
    """Return the cells of a column as a list."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)  # cells of pyarrow are not plain values


def _strings(column: Iterable[Any]) -> list[str | None]:
    return [string_or_none(value) for value in cells(column)]


def string_or_none(value: Any) -> str | None:
    """Convert a cell of a table to text; None if it is empty.

    >>> string_or_none(7), string_or_none(float("nan"))
    ('7', None)
    """
    if isinstance(value, str):
        return value
    return None if is_missing(value) else str(value)


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, or pandas' NaT and NA."""
    if value is None:
        return True
    if isinstance(value, str | list | tuple | dict):
        return False
    unlike = value != value  # true only for NaN and NaT; NA compares to NA
    return unlike is value or (np.ndim(unlike) == 0 and bool(unlike))
