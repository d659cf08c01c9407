"""The corpora of this benchmark: texts, labels where these are subjects, parties, and one vector of each document.

All methods get the same documents and the same vectors. A document without a word of its corpus's list is left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.common import OUT, data, say
from tertulia._arrays import F32, I64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.vocabulary import propose, public

CACHE = OUT / "embedding_topics"
_MIN_DOCUMENTS, _MAX_SHARE = 5, 0.5  # of a word that is scored
_RANDOM_PARTIES = 3


class Source(NamedTuple):
    """A file, and what its columns mean."""

    file: str
    topics: int  # to ask for: the number of subjects where it is known
    label: str | None = None  # a column of subjects
    party: str | None = None  # a column of natural parties; None: three at random


SOURCES = {
    "newsgroups": Source("newsgroups20.parquet", 20, "label", "party"),
    "bbc": Source("bbc_news.parquet", 5, "label"),
    "enron": Source("enron_spam.parquet", 20, None, "party"),
    "reuters": Source("reuters21578.parquet", 20, "label"),
    "imdb": Source("imdb50k.parquet", 20),
    "nsf": Source("nsf_awards_fy2026.parquet", 10, "party", "party"),
}
SIZES = {"newsgroups": 19_066, "bbc": 2_127, "enron": 30_005, "reuters": 19_040, "imdb": 49_582, "nsf": 1_058}
LABELLED = tuple(name for name, source in SOURCES.items() if source.label)


@dataclass(frozen=True)
class Subject:
    """A corpus over its own words, with a vector for each document."""

    name: str
    corpus: Corpus  # in its table: the text, and the label or ""
    parties: tuple[str, ...]  # the party of each document
    topics: int

    @cached_property
    def texts(self) -> list[str]:
        """The texts, for methods that cut words themselves."""
        found: list[str] = self.corpus.table["text"].to_list()
        return found

    @cached_property
    def labels(self) -> Sequence[str] | None:
        """The subject of each document, "" where it has none; None for a corpus without subjects."""
        return self.corpus.table["label"].to_list() if SOURCES[self.name].label else None

    @cached_property
    def places(self) -> dict[str, I64]:
        """The numbers of each party's documents."""
        names = np.array(self.parties)
        return {name: np.flatnonzero(names == name) for name in sorted(set(self.parties))}

    @cached_property
    def scored_texts(self) -> list[str]:
        """The texts without words off the corpus's list."""
        corpus, words = self.corpus, np.array(self.corpus.vocabulary.words, dtype=object)
        bounds = zip(corpus.documents[:-1], corpus.documents[1:], strict=True)
        return [" ".join(words[corpus.words[start:end]]) for start, end in bounds]

    @cached_property
    def vector_file(self) -> Path:
        """The file of the documents' vectors by the static encoder, computed once, and the CPU seconds it took."""
        path = CACHE / "vectors" / f"{self.name}.npz"
        if not path.exists():
            from tertulia.models.vectors.documents import vectors_of

            say(f"{self.name}: embedding {self.corpus.n_documents} documents")
            corpus = self.corpus.select(np.arange(self.corpus.n_documents))
            vectors_of(self.corpus.select([0]), embedding="static")  # reads the table of words
            began = time.process_time()
            vectors = vectors_of(corpus, embedding="static")
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, vectors=vectors, seconds=time.process_time() - began)
        return path

    @cached_property
    def vectors(self) -> F32:
        """The documents' vectors [D, d]."""
        with np.load(self.vector_file) as stored:
            vectors: F32 = stored["vectors"]
        return vectors

    @property
    def seconds_of_vectors(self) -> float:
        """CPU seconds that the vectors took."""
        with np.load(self.vector_file) as stored:
            return float(stored["seconds"])


def subject(name: str) -> Subject:
    """Read a corpus over the words of at least five of its documents and at most half of them."""
    source = SOURCES[name]
    say(f"reading {name}")
    table = pl.read_parquet(data(source.file)).filter(pl.col("text").str.len_chars() > 0)
    if "dup" in table.columns:
        table = table.filter(~pl.col("dup"))
    texts, labels = table["text"].to_list(), [""] * table.height
    if source.label:
        labels = table[source.label].to_list()
    corpus = Corpus.from_texts(texts, [str(n) for n in range(table.height)], labels, keep_text=True)
    corpus = corpus.encode(Vocabulary(tuple(propose(corpus, _MIN_DOCUMENTS, _MAX_SHARE).words)))
    kept = np.flatnonzero(corpus.lengths > 1)
    parties = (
        table[source.party].to_list()
        if source.party
        else [f"party{n}" for n in np.random.default_rng(0).integers(0, _RANDOM_PARTIES, table.height)]
    )
    return Subject(name, corpus.select(kept), tuple(parties[n] for n in kept), source.topics)


def word_vectors() -> Path:
    """Return a file of vectors of the public list's words, each as a document of one word."""
    path = CACHE / "vectors" / "words.npz"
    if not path.exists():
        from tertulia.models.vectors.documents import vectors_of_words

        words = public("english").words
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, words=np.array(words), vectors=vectors_of_words(words, "static"))
    return path
