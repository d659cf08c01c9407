"""Whatever a user has in memory, as a corpus: a list of texts, a data frame of polars or pandas, or a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tertulia.corpus.builder import from_texts
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.tokens import TextOptions
from tertulia.errors import InputError

Documents = Any  # a list of texts, a polars or pandas data frame, or a Corpus


def as_corpus(
    party: str | None, documents: Documents, options: TextOptions | None = None, keep_text: bool = False
) -> Corpus:
    """Make a corpus of whatever a user, or a party, has; document i is text i or row i, a missing text an empty one."""
    whose = f" of party '{party}'" if party else ""
    if isinstance(documents, Corpus):
        return documents
    if isinstance(documents, str):
        raise InputError(f"the texts{whose} are one string: write [text] for a single text, or `tt.read(path)`")
    options = options or TextOptions()
    if not hasattr(documents, "columns"):
        texts = ["" if is_missing(text) else text for text in documents]
        return from_texts(texts, options=options, keep_text=keep_text)
    columns = list(documents.columns)
    if "text" not in columns:
        raise InputError(f"the data frame{whose} has no column 'text', only {columns}: rename one")
    texts = [text or "" for text in _strings(documents["text"])]
    found = {f"{name}s": _strings(documents[name]) for name in ("id", "label", "date", "user") if name in columns}
    return from_texts(texts, **found, options=options, keep_text=keep_text)


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
    if isinstance(value, str | list | dict):
        return False
    unlike = value != value  # true of NaN and NaT alone; NA answers every question with itself
    return unlike is value or (np.ndim(unlike) == 0 and bool(unlike))
