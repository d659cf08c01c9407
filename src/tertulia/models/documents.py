"""Documents of a topic as tables: all that are mostly about it, and a few that are typical of it.

The tables hold texts and ids. They are for the owner of the documents: nothing of them is stored with the model.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.corpus.counts import is_matrix
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from tertulia.corpus import Corpus
    from tertulia.models.topics import Topics

_KNOWN = ("id", "label", "date")  # columns that are repeated, if there are any
_DOUBT = 5.0  # tokens of other topics that are added to each document, so that short ones are not the most typical


class Searchable:
    """The methods of `Topics` that list the documents of a topic."""

    def documents(
        self,
        topic: int | str,
        documents: Documents,
        *,
        min_share: float = 0.5,
        column: str | None = None,
        n_jobs: int = 1,
    ) -> pl.DataFrame:
        """Tabulate the documents of which at least `min_share` is about a topic, the largest share first.

        `topic` is its number or its name. The table has the number of each document among those given, its share of the
        topic, the number of its words that the model knows, its id, label and date where it has some, and its text.
        """
        if not 0.0 <= min_share <= 1.0:
            raise InputError(f"min_share = {min_share}: give a share from 0 to 1")
        model = cast("Topics", self)
        found = _Read.of(model, documents, column, number_of(model, topic), n_jobs)
        order = np.argsort(-found.shares, kind="stable")
        return found.table(order[found.shares[order] >= min_share])

    def assign(self, documents: Documents, *, column: str | None = None) -> I64:
        """Return the number of each document's largest topic; -1: none.

        A document without a known word has none. In a model of clusters (`EmbeddingTopics`) neither has a document that
        is like none of them.
        """
        model = cast("Topics", self)
        corpus = model.encode(documents, column=column)
        if model.encoder is not None and hasattr(model.encoder, "labels"):
            return np.asarray(model.encoder.labels(corpus))
        silent = corpus.lengths == 0 if model.encoder is None else model.encoder.silent(corpus)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on documents without words, which get no topic
            return np.where(silent, -1, model.transform(corpus).argmax(axis=1))

    def representative(
        self, topic: int | str, documents: Documents, *, n: int = 5, column: str | None = None, n_jobs: int = 1
    ) -> pl.DataFrame:
        """Tabulate the n documents that are most typical of a topic; copies of a text count once.

        The topic is the largest of such a document. They are ordered by its share in all their words, to which five
        words about something else are added, so that the shortest are not the first. The columns are those of
        `documents`.
        """
        if n < 1:
            raise InputError(f"n = {n}: show at least 1 document")
        model = cast("Topics", self)
        found = _Read.of(model, documents, column, number_of(model, topic), n_jobs)
        typical = np.where(found.largest, found.shares * found.own.lengths / (found.own.lengths + _DOUBT), -1.0)
        chosen: dict[bytes, int] = {}
        for place in np.argsort(-typical, kind="stable").tolist():
            if len(chosen) == n or typical[place] < 0:
                break
            chosen.setdefault(found.words_of(place), place)
        return found.table(np.array([*chosen.values()], np.int64))


class _Read(NamedTuple):
    """Documents that were read for a topic, with its share of each."""

    corpus: Corpus  # with the texts
    own: Corpus  # the same documents over the model's words
    shares: F64  # [D] -1 for documents without a known word
    largest: Array  # [D] whether it is the largest topic of the document

    @classmethod
    def of(cls, model: Topics, documents: Documents, column: str | None, topic: int, n_jobs: int) -> _Read:
        documents = with_column(documents, column)
        corpus = (
            model.encode(documents)
            if is_matrix(documents)
            else as_corpus(None, documents, model.options, keep_text=True)
        )
        own = model.encode(corpus)
        silent = own.lengths == 0 if model.encoder is None else model.encoder.silent(own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on documents without words, which the tables leave out
            theta = model.transform(own, n_jobs=n_jobs)
        shares = np.where(silent, -1.0, theta[:, topic])
        return cls(corpus, own, shares, shares == theta.max(axis=1))

    def words_of(self, place: int) -> bytes:
        """Return what copies of a document share: its words in order."""
        start, end = self.corpus.documents[place : place + 2]
        return np.asarray(self.corpus.words[start:end]).tobytes()

    def table(self, places: I64) -> pl.DataFrame:
        """Tabulate some of the documents."""
        import polars as pl

        from tertulia.models.frame import Frame

        rows = self.corpus.table[places]
        known = {name: rows[name] for name in _KNOWN if name in rows.columns}
        numbers = {"document": places, "share": self.shares[places], "words": self.own.lengths[places]}
        return Frame(pl.DataFrame({**numbers, **known, "text": pl.Series(self._texts(places), dtype=pl.String)}))

    def _texts(self, places: I64) -> list[str]:
        """Return the texts; documents given as words have these for a text."""
        table, ends, words = self.corpus.table, self.corpus.documents, self.corpus.vocabulary.words
        if "text" in table.columns:
            return [text or "" for text in table["text"][places]]
        return [" ".join(words[word] for word in self.corpus.words[ends[place] : ends[place + 1]]) for place in places]


def number_of(model: Topics, topic: int | str) -> int:
    """Return the number of a topic given by its number or its name; raise `InputError` if there is none."""
    if isinstance(topic, str):
        if topic not in model.names or not topic:
            named = [name for name in model.names if name]
            known = f"there are {', '.join(named)}" if named else "no topic has a name: `model.rename({3: 'finance'})`"
            raise InputError(f"no topic is named '{topic}': {known}")
        return model.names.index(topic)
    try:
        return range(model.n_topics)[topic]
    except (IndexError, TypeError):
        raise InputError(f"topic = {topic!r}: give a number from 0 to {model.n_topics - 1}, or a name") from None
