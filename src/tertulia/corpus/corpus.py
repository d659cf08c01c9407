"""A party's documents as flat integer arrays: small, memory-mappable, ready for the kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tertulia._arrays import I32, I64, Array
from tertulia.corpus import storage
from tertulia.corpus.offsets import UnitKind, chunks, drop_empty, narrow, offsets_of, ranges
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import is_heldout
from tertulia.corpus.tokens import TextOptions
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import InputError

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 22  # tokens processed at a time, so that memory-mapped corpora stay on disk


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as word numbers, with their sentences and paragraphs.

    Sentences and paragraphs are never empty and never cross a document; an empty document has none. A corpus takes
    about five bytes per token. Make one with `Corpus.from_texts` or `read`.

    >>> corpus = Corpus.from_texts(["Rain fell. Rivers rose.", "Bridges held."])
    >>> corpus.n_documents, corpus.n_tokens, corpus.sentences.tolist()
    (2, 6, [0, 2, 4, 6])
    """

    words: I32  # [N] number of each token's word
    documents: I64  # [D+1] token offsets
    sentences: I32 | I64  # [S+1] token offsets
    paragraphs: I32 | I64  # [P+1] token offsets
    vocabulary: Vocabulary
    table: pl.DataFrame  # D rows: id, and label, date, user where there are any
    options: TextOptions = field(default_factory=TextOptions)
    report: ReadReport = field(default_factory=ReadReport)

    def __post_init__(self) -> None:
        if len(self.documents) != self.table.height + 1:
            raise InputError(f"{len(self.documents) - 1} documents do not fit a table of {self.table.height} rows")
        for name in ("documents", "sentences", "paragraphs"):
            offsets: Array = getattr(self, name)
            if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(self.words):
                raise InputError(f"offsets of {name} must run from 0 to {len(self.words)}, the number of tokens")

    @property
    def n_documents(self) -> int:
        """The number of documents, empty ones included."""
        return len(self.documents) - 1

    @property
    def n_tokens(self) -> int:
        """The number of tokens of all documents."""
        return len(self.words)

    @property
    def lengths(self) -> I64:
        """The number of tokens of each document, [D]."""
        return np.diff(self.documents)

    def __repr__(self) -> str:
        return f"Corpus({self.n_documents} documents, {self.n_tokens} tokens, {len(self.vocabulary)} words)"

    def select(self, which: Array | Sequence[int] | Sequence[bool]) -> Corpus:
        """Take the documents under a boolean mask, or with the given indices, in that order."""
        chosen = np.asarray(which)
        if chosen.dtype == np.bool_:
            if len(chosen) != self.n_documents:
                raise InputError(f"a mask of {len(chosen)} does not fit {self.n_documents} documents")
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        if np.any((chosen < 0) | (chosen >= self.n_documents)):
            raise InputError(f"documents are numbered 0 to {self.n_documents - 1}; one that was asked for is not there")
        starts, lengths = self.documents[chosen], self.lengths[chosen]
        return replace(
            self,
            words=self.words[ranges(starts, lengths)],
            documents=offsets_of(lengths),
            sentences=self._part(self.sentences, chosen),
            paragraphs=self._part(self.paragraphs, chosen),
            table=self.table[chosen],
        )

    def _part(self, offsets: Array, chosen: I64) -> I32 | I64:
        first = np.searchsorted(offsets, self.documents)  # a document begins and ends at a sentence boundary
        mine = ranges(first[chosen], np.diff(first)[chosen])
        return narrow(offsets_of(np.diff(offsets)[mine]))

    def encode(self, vocabulary: Vocabulary, *, unknown: bool = False) -> Corpus:
        """Encode the same documents in another vocabulary; unknown tokens are dropped, documents never.

        With `unknown`, unknown tokens keep their places as one additional word, the last (`Vocabulary.with_unknown`).
        Then neither lengths nor places reveal which words are on the list.
        """
        if unknown:
            return self._keep_unknown(vocabulary)
        if vocabulary.words == self.vocabulary.words:
            return replace(self, vocabulary=vocabulary)
        number = self.vocabulary.places_in(vocabulary)  # [V of self]
        words = number[self.words] if len(number) else np.zeros(0, np.int32)
        keep = words >= 0
        before = offsets_of(_sums(keep, self.sentences))  # [S+1] kept tokens before each sentence
        return replace(
            self,
            words=words[keep],
            documents=before[np.searchsorted(self.sentences, self.documents)],
            sentences=narrow(drop_empty(before)),
            paragraphs=narrow(drop_empty(before[np.searchsorted(self.sentences, self.paragraphs)])),
            vocabulary=vocabulary,
        )

    def _keep_unknown(self, vocabulary: Vocabulary) -> Corpus:
        number = self.vocabulary.places_in(vocabulary)  # [V of self]
        number[number < 0] = len(vocabulary)
        words = number[self.words] if len(number) else np.zeros(0, np.int32)
        return replace(self, words=words, vocabulary=vocabulary.with_unknown)

    def with_embeddings(self, vectors: Array) -> Corpus:
        """Give each document a sentence embedding, [D, E], that was computed elsewhere."""
        return replace(self, table=self.table.with_columns(embedding_column(vectors, self.n_documents)))

    def document_frequency(self) -> I64:
        """Count the documents in which each word occurs, [V]."""
        V, lengths = len(self.vocabulary), self.lengths
        found = np.zeros(V, np.int64)
        first = 0
        while first < self.n_documents:
            last = int(np.searchsorted(self.documents, self.documents[first] + _BLOCK, side="right")) - 1
            last = min(max(last, first + 1), self.n_documents)
            document = np.repeat(np.arange(last - first), lengths[first:last])
            words = self.words[self.documents[first] : self.documents[last]]
            pairs = np.sort(document * V + words)  # `np.unique` takes twenty times as long
            found += np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] % max(V, 1), minlength=V)
            first = last
        return found

    def words_in_use(self) -> tuple[str, ...]:
        """Return the words of the vocabulary that occur in a document, in its order."""
        found = self.document_frequency()
        return tuple(word for word, count in zip(self.vocabulary.words, found.tolist(), strict=True) if count)

    def split(self, heldout: float, seed: int = 0) -> tuple[Corpus, Corpus]:
        """Split into training and held-out documents by a hash of the id: each stays on its side as data grow."""
        if heldout == 0:
            return self, self.select(np.zeros(self.n_documents, np.bool_))
        out = np.fromiter((is_heldout(name, heldout, seed) for name in self.table["id"]), np.bool_, self.n_documents)
        return self.select(~out), self.select(out)

    def units(self, kind: UnitKind, n: int = 3) -> I64:
        """Find start and end of each semantic unit, [U, 2]; together the units cover every token exactly once.

        An n-gram is n consecutive words of a sentence; the rest of the sentence is a shorter one.
        """
        if kind == "ngram":
            return chunks(self.sentences, n)
        if kind not in ("sentence", "paragraph"):
            raise InputError(f"unit '{kind}' is unknown: use 'ngram', 'sentence' or 'paragraph'")
        offsets = (self.sentences if kind == "sentence" else self.paragraphs).astype(np.int64)
        return np.stack((offsets[:-1], offsets[1:]), axis=1)

    def save(self, directory: str | Path) -> None:
        """Write the corpus to a directory for `load`; if that fails, an earlier corpus there stays intact."""
        arrays = {name: getattr(self, name) for name in storage.ARRAYS}
        storage.write(Path(directory), arrays, self.vocabulary, self.table, self.options, self.report)

    @classmethod
    def load(cls, directory: str | Path, mmap: bool = True) -> Corpus:
        """Read a saved corpus; with `mmap` the arrays stay on disk until they are touched."""
        return cls(**storage.read(Path(directory), mmap))

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        ids: Sequence[str] | None = None,
        labels: Sequence[str] | None = None,
        options: TextOptions | None = None,
        keep_text: bool = False,
    ) -> Corpus:
        """Make a corpus from texts in memory: document i is text i, even if it is empty.

        Without ids, a document's id is a hash of its text. With `keep_text` the texts stay in the table, for models
        that read sentences (`CombinedTM`, `ZeroShotTM`).
        """
        from tertulia.corpus.builder import from_texts  # the builder imports this module

        return from_texts(texts, ids, labels, options=options, keep_text=keep_text)

    @staticmethod
    def concatenate(corpora: Sequence[Corpus]) -> Corpus:
        """Put all documents into one corpus, over the union of the vocabularies (in order of first appearance)."""
        from tertulia.corpus.builder import concatenate

        return concatenate(corpora)


def embedding_column(vectors: Array, documents: int) -> pl.Series:
    """Make the column that holds documents' embeddings."""
    import polars as pl

    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or len(vectors) != documents or not np.all(np.isfinite(vectors)):
        raise InputError(f"embeddings {vectors.shape} must be finite and a row for each of {documents} texts")
    return pl.Series("embedding", vectors, dtype=pl.Array(pl.Float32, vectors.shape[1]))


def _sums(values: Array, offsets: Array) -> I64:
    """Sum the values of each stretch; none may be empty."""
    if len(offsets) < 2:
        return np.zeros(0, np.int64)
    return np.add.reduceat(values, offsets[:-1], dtype=np.int64)
