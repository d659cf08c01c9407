"""Documents in the explorer: the nearest to each topic, and topic shares over time and by label.

A page with documents contains their texts. It is for their owner only, and says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import F64, I64
from tertulia.corpus import Corpus
from tertulia.corpus.inputs import Documents, as_corpus, string_or_none, with_column
from tertulia.corpus.periods import By, Periods
from tertulia.errors import InputError
from tertulia.models import Topics
from tertulia.view.pages.explorer.packing import squeeze_json

if TYPE_CHECKING:
    import polars as pl

_MOST = 1_000  # number of documents in a page
_LONGEST = 4_000  # characters of a document in a page
_LEAST = 0.005  # least share that is kept
_PERIODS: tuple[tuple[By, int], ...] = (("month", 48), ("quarter", 80), ("year", 1200))  # greatest number of periods
_NPMI = 10  # words of a topic


def document_facts(
    model: Topics,
    documents: Documents,
    labels: Sequence[str | None] | None,
    dates: Sequence[str | None] | None,
    column: str | None,
) -> dict[str, Any]:
    """Collect the data of documents for the page."""
    corpus = as_corpus(None, with_column(documents, column), model.options, keep_text=True)
    for name, given in (("label", labels), ("date", dates)):
        if given is not None:
            corpus = _with(corpus, name, given)
    own = model.encode(corpus)
    if not own.n_tokens:
        raise InputError("no document holds a word that the model knows: is it the right column, or language?")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on documents without words, which the page does not count
        shares = model.transform(own)
        trends = _trends(model.unhide(), own)
    return {"documents": squeeze_json(_rows(corpus, shares)), "trends": trends or None, **_npmi(model, own)}


def _with(corpus: Corpus, name: str, given: Sequence[Any]) -> Corpus:
    """Add a column to the documents."""
    import polars as pl

    values = [string_or_none(value) for value in given]
    if len(values) != corpus.n_documents:
        raise InputError(f"{len(values)} {name}s were given for {corpus.n_documents} documents: give one for each")
    return replace(corpus, table=corpus.table.with_columns(pl.Series(name, values, pl.String)))


def _rows(corpus: Corpus, shares: F64) -> dict[str, Any]:
    """Select the documents of the page, with their topics."""
    chosen = _nearest(shares)
    table = corpus.table[chosen]
    known = {name: table[name].to_list() for name in ("id", "label", "date", "text") if name in table.columns}
    words = corpus.vocabulary.words
    rows = []
    for place, number in enumerate(chosen.tolist()):
        row = {name: values[place] for name, values in known.items()}
        if "text" not in row:  # documents given as tokens have no other text
            start, end = corpus.documents[number : number + 2]
            row["text"] = " ".join(words[word] for word in corpus.words[start:end][:_LONGEST])
        row["text"] = row["text"][:_LONGEST]
        large = np.flatnonzero(shares[number] >= _LEAST).tolist()
        rows.append(row | {"shares": {k: round(float(shares[number, k]), 4) for k in large}})
    return {"total": corpus.n_documents, "rows": rows}


def _nearest(shares: F64) -> I64:
    """Return the numbers of all documents, or of those nearest to each topic, in order."""
    D, K = shares.shape
    if D <= _MOST:
        return np.arange(D)
    each = max(1, _MOST // K)
    return np.unique(np.argsort(-shares, axis=0, kind="stable")[:each])


def _trends(model: Topics, corpus: Corpus) -> dict[str, Any]:
    """Compute shares by label and by period, if documents have labels and dates."""
    found: dict[str, Any] = {}
    if "label" in corpus.table.columns:
        found["labels"] = _groups(model.by_label(corpus), "label", model.n_topics)
    if "date" in corpus.table.columns:
        for by, most in _PERIODS:
            periods = Periods.covering(by, corpus.table["date"])
            if periods is not None and periods.count <= most:
                table = model.over_time(corpus, by).drop_nulls("period")
                return found | {"by": by, "periods": _groups(table, "period", model.n_topics)}
    return found


def _groups(table: pl.DataFrame, key: str, K: int) -> list[dict[str, Any]]:
    """Turn a table with a row for each group and topic into one row for each group."""
    shares = table["share"].fill_null(0.0).to_numpy().reshape(-1, K)
    names, documents = table[key].to_list()[::K], table["documents"].to_list()[::K]
    return [
        {"name": name, "documents": count, "shares": np.round(row, 5).tolist()}
        for name, count, row in zip(names, documents, shares, strict=True)
    ]


def _npmi(model: Topics, corpus: Corpus) -> dict[str, Any]:
    """Compute the NPMI coherence of each topic on these documents."""
    from tertulia.metrics.coherence import topic_coherence

    if len(model.vocabulary) < 2:
        return {}
    found = topic_coherence(model.top_words(_NPMI), corpus, "npmi", top=_NPMI).per_topic
    return {"npmi": np.round(found, 4).tolist(), "npmi_documents": corpus.n_documents}
