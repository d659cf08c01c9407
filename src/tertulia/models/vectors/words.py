"""Public vectors of words, and what a word weighs in a document.

The package has vectors for its list `english`: each of the 30,000 words was encoded once by the sentence model
all-MiniLM-L6-v2, and its 384 numbers projected on the list's first 100 principal components, whitened, at unit length
in steps of 1/127 (`python -m tertulia.models.vectors.words` makes the file). All parties thus have the same bits, and
nobody needs the model. Files of word vectors (GloVe, word2vec) serve other languages and fields.

A word of frequency p weighs a / (a + p) (Arora, Liang, Ma 2017, "SIF"). Frequencies are public, too: lists of words
have the most frequent first, and a word's frequency follows from its rank by Zipf's law.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import F32, F64, I64, Array
from tertulia.corpus.vocabulary import ENGLISH, public
from tertulia.corpus.word_vectors import read_vectors

STATIC, FILE = "static", "english.npz"
WIDTH, _STEPS = 100, 127
I8 = NDArray[np.int8]
_SIF = 1e-3  # a
_ZIPF = 2.7  # Mandelbrot's offset of ranks


class WordTable(NamedTuple):
    """Vectors of some of a vocabulary's words."""

    vectors: F32  # [V, d] unit length, or 0 for a word without one
    weights: F64  # [V] in a document, 0 for a word without a vector

    @property
    def width(self) -> int:
        """The number of dimensions."""
        return int(self.vectors.shape[1])


def word_table(words: tuple[str, ...], source: str = STATIC) -> WordTable:
    """Return the vectors of words from the shipped table, or from a file of word vectors."""
    return _table(words, source)


@lru_cache(maxsize=4)
def _table(words: tuple[str, ...], source: str) -> WordTable:
    found, vectors = _shipped(words) if source == STATIC else _from_file(words, source)
    whole = np.zeros((len(words), vectors.shape[1]), np.float32)
    whole[found] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    weights = np.zeros(len(words))
    weights[found] = weights_of(words)[found]
    return WordTable(whole, weights)


def _shipped(words: tuple[str, ...]) -> tuple[I64, F32]:
    places = public(ENGLISH).lookup(words)
    found = np.flatnonzero(places >= 0)
    return found, _steps()[places[found]].astype(np.float32)


def _from_file(words: tuple[str, ...], path: str) -> tuple[I64, F32]:
    read = read_vectors(path, words)
    return read.numbers, read.vectors


def weights_of(words: tuple[str, ...]) -> F64:
    """Return a / (a + p) of each word; p is by its rank in the list `english`, else by its place among these words."""
    ranks = public(ENGLISH).lookup(words).astype(np.int64)
    known = ranks >= 0
    if 2 * known.sum() < len(words):  # another language
        ranks = np.arange(len(words))
    else:  # names and terms, which the list lacks, are rare
        ranks[~known] = len(public(ENGLISH))
    p = 1.0 / (ranks + _ZIPF) / np.sum(1.0 / (np.arange(len(public(ENGLISH))) + _ZIPF))
    return np.asarray(_SIF / (_SIF + p))


@lru_cache(maxsize=1)
def _steps() -> I8:
    with files("tertulia.models.vectors").joinpath(FILE).open("rb") as file:
        steps: I8 = np.load(file, allow_pickle=False)["steps"]
        return steps


@lru_cache(maxsize=8)
def fingerprint_of(source: str) -> str:
    """Hash a table of word vectors: two parties with the same hash have the same vectors."""
    digest = hashlib.blake2b(digest_size=16)
    if source == STATIC:
        digest.update(public(ENGLISH).fingerprint.encode() + _steps().tobytes())
    else:
        with Path(source).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def project(encoded: Array, width: int = WIDTH) -> I8:
    """Centre vectors, project them on their first principal components, whiten, and round to steps of 1/127.

    The sign of a component is that for which its largest number is positive, so that a rerun gives the same table.
    """
    centred = np.asarray(encoded, np.float64) - encoded.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    axes = axes[:, ::-1][:, :width]
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    found = centred @ axes / np.sqrt(np.maximum(values[::-1][:width], 1e-12))
    return np.asarray(np.rint(found / np.abs(found).max(axis=1, keepdims=True) * _STEPS), np.int8)


def main(words: Sequence[str] | None = None) -> None:
    """Make the shipped file: it takes about a minute, and the extra `neural`."""
    from tertulia.models.neural.embeddings import embed

    encoded = embed(list(words or public(ENGLISH).words))
    np.savez_compressed(Path(__file__).with_name(FILE), steps=project(encoded))


if __name__ == "__main__":
    main()
