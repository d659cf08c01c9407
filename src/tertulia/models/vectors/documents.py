"""Vectors of documents [D, d]: unit length, and 0 for a document that has nothing to encode.

| embedding | a document's vector |
|---|---|
| `static` | the mean of its words' vectors from the shipped table, by weight and root of frequency (`words`) |
| a file of word vectors | the same, of these |
| `minilm`, or a folder of a sentence-transformers model | the model's vector of its text |
| `given` | the vector that it came with (`corpus.with_embeddings`) |
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import sparse

from tertulia._arrays import F32, Array, Bool
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.models.vectors import words as tables
from tertulia.models.vectors.words import STATIC, word_table

GIVEN, MINILM = "given", "minilm"
Kind = Literal["words", "sentences", "given"]
_PER_TEXT, _PER_LETTER = 5e-3, 25e-6  # seconds of one core: 6.5 ms for a title, 60 ms for an article
_FILES = (".npz", ".txt", ".bin", ".vec")  # of word vectors


def kind_of(embedding: str) -> Kind:
    """Tell what an embedding reads, by its name alone: it may be another machine's.

    >>> kind_of("static"), kind_of("glove.txt.gz"), kind_of("minilm"), kind_of("models/e5"), kind_of("given")
    ('words', 'words', 'sentences', 'sentences', 'given')
    """
    if embedding == GIVEN:
        return "given"
    return "words" if embedding == STATIC or embedding.removesuffix(".gz").endswith(_FILES) else "sentences"


def fingerprint_or_none(embedding: str) -> str | None:
    """Hash what an embedding depends on: parties with the same hash have comparable vectors. None: it is not here."""
    kind = kind_of(embedding)
    if kind == "given":
        return None
    try:
        if kind == "words":
            return tables.fingerprint_of(embedding)
        from tertulia.models.neural.embeddings import digest_of, model_path

        return digest_of(model_path(_folder(embedding)))
    except (InputError, OSError):
        return None


def vectors_of(corpus: Corpus, embedding: str = STATIC) -> F32:
    """Return the vectors [D, d] of documents: those that they came with, or computed from their words or texts."""
    kind = "given" if "embedding" in corpus.table.columns else kind_of(embedding)
    if kind == "given":
        if "embedding" not in corpus.table.columns:
            raise InputError(
                "these documents come without vectors, and the model reads no others: give them "
                "(`corpus.with_embeddings(vectors)`), made as those that it was trained on"
            )
        return _unit(corpus.table["embedding"].to_numpy())
    if kind == "words":
        return _mean_of_words(corpus, embedding)
    return _of_texts(corpus, embedding)


def silent(corpus: Corpus, embedding: str) -> Bool:
    """Return which documents [D] have no vector."""
    return np.asarray(~vectors_of(corpus, embedding).any(axis=1))


def vectors_of_words(words: tuple[str, ...], embedding: str) -> F32:
    """Return vectors of a public list's words, encoded as documents are; for `given` there are none."""
    kind = kind_of(embedding)
    if kind == "words":
        return word_table(words, embedding).vectors
    if kind == "given":
        return np.zeros((0, 0), np.float32)
    return _unit(_encoded(words, embedding))


def _mean_of_words(corpus: Corpus, source: str) -> F32:
    table = word_table(corpus.vocabulary.words, source)
    shape = corpus.n_documents, len(corpus.vocabulary)
    counts = sparse.csr_array(
        (np.ones(corpus.n_tokens, np.float32), corpus.words.copy(), corpus.documents.copy()), shape=shape
    )
    counts.sum_duplicates()
    counts.data = np.sqrt(counts.data) * table.weights[counts.indices].astype(np.float32)
    return _unit(counts @ table.vectors)


def _of_texts(corpus: Corpus, embedding: str) -> F32:
    if "text" not in corpus.table.columns:
        raise InputError(
            f"embedding = '{embedding}' reads texts, but the corpus keeps only words: build it with keep_text=True, "
            "give it vectors (`corpus.with_embeddings`), or set embedding = 'static'"
        )
    texts = corpus.table["text"].to_list()
    if not texts:
        return np.zeros((0, _encoded((".",), embedding).shape[1]), np.float32)
    found = _unit(_encoded(tuple(texts), embedding))
    found[[not text.strip() for text in texts]] = 0.0
    return found


def _encoded(texts: tuple[str, ...], embedding: str) -> F32:
    from tertulia.models.neural.embeddings import embed

    return embed(texts, _folder(embedding))


def seconds_to_encode(corpus: Corpus, embedding: str) -> float:
    """Estimate the seconds that a core takes to embed a corpus, if no text is in the cache; 0 for other embeddings."""
    if kind_of(embedding) != "sentences" or "text" not in corpus.table.columns:
        return 0.0
    letters = corpus.table["text"].str.len_chars().sum()
    return corpus.n_documents * _PER_TEXT + float(letters) * _PER_LETTER


def _folder(embedding: str) -> str | None:
    return None if embedding == MINILM else embedding


def _unit(vectors: Array) -> F32:
    found = np.array(vectors, np.float32)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(np.where(length > 1e-9, found / np.maximum(length, 1e-9), 0.0), np.float32)
