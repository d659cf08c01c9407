"""Whatever a user has in memory, as a corpus: texts, lists of tokens, dicts, a data frame, or a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tertulia.corpus.builder import from_texts, text_id
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.offsets import narrow, offsets_of
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import InputError

Documents = Any  # texts, lists of tokens, dicts, a polars or pandas data frame, a matrix of counts, or a Corpus
_LIKELY = {"texts", "document", "documents", "content", "body", "abstract", "message", "sentence", "review", "note"}


def as_corpus(
    party: str | None,
    documents: Documents,
    options: TextOptions | None = None,
    keep_text: bool = False,
) -> Corpus:
    """Make a corpus of whatever a user, or a party, has; document i is text i or row i, a missing text an empty one.

    That is a list of texts, of lists of tokens or of dicts, a data frame, or a corpus. Frames and dicts have their
    texts in `text`, unless `with_column` says another.
    """
    whose = f" of party '{party}'" if party else ""
    if isinstance(documents, Corpus):
        return documents
    if isinstance(documents, str | bytes):
        raise InputError(f"the texts{whose} are one string: write [text] for a single text, or `tt.read(path)`")
    options = options or TextOptions()
    if hasattr(documents, "columns"):
        return _from_table({name: documents[name] for name in documents.columns}, whose, options, keep_text)
    rows = list(documents)
    first = _first(rows)
    if isinstance(first, Mapping):
        return _from_table(_columns(rows), whose, options, keep_text)
    if isinstance(first, list | tuple):
        return _from_tokens(rows, whose, options)
    return from_texts(["" if is_missing(text) else text for text in rows], options=options, keep_text=keep_text)


class Renamed:
    """A table whose texts are in another column than `text`."""

    def __init__(self, table: Any, column: str) -> None:
        self._table, self._column = table, column
        self.columns = ["text", *(name for name in table.columns if name not in ("text", column))]
        if hasattr(table, "iloc"):
            self.iloc, self.index = table.iloc, table.index  # pandas' rows keep their names

    def __getitem__(self, name: str) -> Any:
        return self._table[self._column if name == "text" else name]


class _Table(dict[str, Any]):
    """Columns by their names."""

    @property
    def columns(self) -> list[str]:
        return list(self)


def with_column(documents: Documents, column: str | None) -> Documents:
    """The same documents, whose texts are in this column.

    >>> as_corpus(None, with_column([{"body": "Rain fell."}, {"body": "Rivers rose."}], "body"))
    Corpus(2 documents, 4 tokens, 4 words)
    """
    if column is None:
        return documents
    if not hasattr(documents, "columns"):
        rows = [] if isinstance(documents, Corpus | str | bytes) else list(documents)
        if not isinstance(_first(rows), Mapping):
            raise InputError(f"column = '{column}': only tables and lists of dicts have columns; leave it out")
        documents = _Table(_columns(rows))
    if column not in list(documents.columns):
        raise InputError(f"the table has no column '{column}', only {list(documents.columns)}: name one of them")
    return Renamed(documents, column)


def _first(rows: list[Any]) -> Any:
    """The first row that is not missing."""
    return next((row for row in rows if not is_missing(row)), "")


def _columns(rows: list[Any]) -> dict[str, list[Any]]:
    """The columns of rows that are dicts; what a row lacks is missing."""
    names = dict.fromkeys(str(name) for row in rows if isinstance(row, Mapping) for name in row)
    return {name: [row.get(name) if isinstance(row, Mapping) else None for row in rows] for name in names}


def _from_table(table: Mapping[str, Iterable[Any]], whose: str, options: TextOptions, keep_text: bool) -> Corpus:
    """Documents of a table, by its columns."""
    if "text" not in table:
        likely = [known for known in table if str(known).lower() in _LIKELY]
        remedy = f"write column='{likely[0]}'" if likely else "write column='...', or rename one"
        raise InputError(f"the table{whose} has no column 'text', only {list(table)}: {remedy}")
    texts = [text or "" for text in _strings(table["text"])]
    found = {f"{known}s": _strings(table[known]) for known in ("id", "label", "date", "user") if known in table}
    return from_texts(texts, **found, options=options, keep_text=keep_text)


def _from_tokens(rows: list[Any], whose: str, options: TextOptions) -> Corpus:
    """Documents that are cut into words already: they are taken as they are, each as one sentence."""
    import polars as pl

    index: dict[str, int] = {}
    words: list[int] = []
    lengths = np.zeros(len(rows), np.int64)
    for number, row in enumerate(rows):
        tokens = [] if is_missing(row) else row
        if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
            raise InputError(f"document {number}{whose} is no list of words, as the first one is: give all as lists")
        words.extend(index.setdefault(token, len(index)) for token in tokens)
        lengths[number] = len(tokens)
    ids = [text_id(" ".join(row)) if row else text_id("") for row in rows]
    units = narrow(offsets_of(lengths[lengths > 0]))
    vocabulary, table = Vocabulary(tuple(index)), pl.DataFrame({"id": ids})
    return Corpus(np.array(words, np.int32), offsets_of(lengths), units, units, vocabulary, table, options)


def _strings(column: Iterable[Any]) -> list[str | None]:
    return [string_or_none(value) for value in column]


def string_or_none(value: Any) -> str | None:
    """Write a cell of a table as text; None where nothing is there.

    >>> string_or_none(7), string_or_none(float("nan"))
    ('7', None)
    """
    if isinstance(value, str):
        return value
    return None if is_missing(value) else str(value)


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, or what pandas puts there (NaT, NA)."""
    if value is None:
        return True
    if isinstance(value, str | list | tuple | dict):
        return False
    unlike = value != value  # true of NaN and NaT alone; NA answers every question with itself
    return unlike is value or (np.ndim(unlike) == 0 and bool(unlike))
