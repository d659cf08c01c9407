"""The clusters that EmbeddingTopics starts from: words that occur, clustered by their public vectors.

Every party computes them from the same totals. A word weighs its documents times a / (a + p) of its public frequency p.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.methods.embedding_topics import clusters
from tertulia.methods.embedding_topics.budget import BITS, WORDS, Terms, deviation, threshold
from tertulia.models.vectors.documents import vectors_of_words
from tertulia.models.vectors.words import weights_of

_MOST = 3_000  # the heaviest words, which make the first clusters


def centre_of(vectors: Array, documents: Array) -> F64:
    """Return the mean vector of all documents."""
    return np.asarray(vectors / max(float(documents[0]), float(1 << BITS)))


def weights_above(counts: Array, terms: Terms, louder: float) -> F64:
    """Return documents by word, 0 for words that do not show above the noise."""
    found = np.ldexp(counts.astype(np.float64), -BITS)
    return np.where(found > threshold(louder * deviation(WORDS, terms), len(counts)), found, 0.0)


def first_centroids(words: tuple[str, ...], counts: F64, terms: Terms, width: int, embedding: str) -> F64:
    """Return the first centroids [K, width]; a process computes them once for all its parties and rounds."""
    return _first(words, counts.tobytes(), terms.model_dump_json(), width, embedding)


@lru_cache(maxsize=2)
def _first(words: tuple[str, ...], counts: bytes, settings: str, width: int, embedding: str) -> F64:
    terms = Terms.model_validate_json(settings)
    weights = np.frombuffer(counts) * weights_of(words)
    seeds = clusters.places_of(terms.seeds, words)
    heavy = np.argsort(-weights, kind="stable")[:_MOST]
    chosen = np.union1d(heavy[weights[heavy] > 0], np.concatenate([*seeds, np.zeros(0, np.int64)])).astype(np.int64)
    vectors = vectors_of_words(tuple(words[v] for v in chosen), embedding)
    if vectors.shape[1] != width:  # vectors were given with the documents, and words have none
        vectors = np.zeros((len(chosen), width), np.float32)
    own, known = weights[chosen], vectors.any(axis=1)
    centre = own[known] @ vectors[known] / max(own[known].sum(), 1e-12)
    directions = clusters.around(vectors, centre)
    places = [np.searchsorted(chosen, found) for found in seeds]
    return clusters.first_centroids(directions, own, terms.topics, terms.seed or 0, places)
