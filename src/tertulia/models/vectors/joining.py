"""Models of clusters that were trained apart, joined into one: no document is needed, and nothing more leaves.

A centroid is a direction from its model's centre. A document of unit length is at about sqrt(1 - |centre|^2) from it,
and the mean cosine of a topic's documents is known, so the mean vector of the topic is known, too. All mean vectors are
taken from the common centre; two topics are one if their directions are similar. Their words are mixed by their
numbers of documents, over the words of both models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from tertulia._arrays import F64, Array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.models.continuity import side_by_side
from tertulia.models.topics import Topics
from tertulia.models.vectors.centroids import OUTLIERS, Centroids

SAME = 0.6  # least cosine of two topics that are one


def merge_models(models: Sequence[Topics], *, min_similarity: float = SAME) -> Topics:
    """Join models that were trained apart, in order: topics of the first keep their numbers, ids and names.

    Topics of later models that are similar to none get new ids; `provenance["joined"]` says which became which.
    """
    if len(models) < 2:
        raise InputError("joining needs two models or more")
    if not 0.0 < min_similarity <= 1.0:
        raise InputError(f"min_similarity = {min_similarity}: give a cosine above 0, at most 1")
    found = models[0]
    for other in models[1:]:
        found = _join(found, other, min_similarity)
    return found


class _Mean(NamedTuple):
    """Mean vectors of topics, and how many documents they have."""

    vectors: F64  # [K, d]
    documents: F64  # [K]
    centre: F64  # [d]


def _join(one: Topics, other: Topics, min_similarity: float) -> Topics:
    _check(one, other)
    a, b = _mean_of(one), _mean_of(other)
    total = a.documents.sum() + b.documents.sum()
    centre = (a.documents.sum() * a.centre + b.documents.sum() * b.centre) / total
    similar = _directions(a.vectors, centre) @ _directions(b.vectors, centre).T
    rows, columns = linear_sum_assignment(similar, maximize=True)
    partner = {int(j): int(k) for k, j in zip(rows, columns, strict=True) if similar[k, j] >= min_similarity}
    new = [j for j in range(other.n_topics) if j not in partner]
    place = {**partner, **{j: one.n_topics + z for z, j in enumerate(new)}}
    K = one.n_topics + len(new)
    words_b, words_a = side_by_side(other, one)
    vectors, words, documents = np.zeros((K, len(centre))), np.zeros((K, words_a.shape[1])), np.zeros(K)
    parts = [(range(one.n_topics), a, words_a), ([place[j] for j in range(other.n_topics)], b, words_b)]
    for places, mean, rows_ in parts:
        where = np.array(places)
        np.add.at(vectors, where, mean.documents[:, None] * mean.vectors)
        np.add.at(words, where, mean.documents[:, None] * rows_)
        np.add.at(documents, where, mean.documents)
    first = max((*one.ids, *one.retired)) + 1
    ids = (*one.ids, *range(first, first + len(new)))
    names = [*one.names, *(other.names[j] for j in new)]
    for j, k in partner.items():
        names[k] = names[k] or other.names[j]
    added = tuple(word for word in other.vocabulary.words if word not in one.vocabulary.index)
    vocabulary = Vocabulary((*one.vocabulary.words, *added))
    joined = [*one.provenance.get("joined", ()), {str(other.ids[j]): ids[k] for j, k in sorted(place.items())}]
    encoder = _encoder(one, vectors / documents[:, None], documents, centre, len(vocabulary))
    return replace(
        _plain(one), topic_word=words / words.sum(axis=1, keepdims=True), vocabulary=vocabulary,
        alpha=one.alpha.sum() * (documents + 1.0) / (documents + 1.0).sum(), weights=documents, encoder=encoder,
        ids=ids, names=names, provenance={**one.provenance, "joined": joined},
    )  # fmt: skip


def _plain(model: Topics) -> Topics:
    """Return the model without what a run adds to it."""
    kept = ("topic_word", "vocabulary", "alpha", "beta", "weights", "options", "provenance", "encoder", "ids")
    parts: dict[str, Any] = {name: getattr(model, name) for name in (*kept, "retired", "names", "hidden")}
    return Topics(**parts)


def _check(one: Topics, other: Topics) -> None:
    for model in (one, other):
        if not isinstance(model.encoder, Centroids):
            raise InputError("only models of clusters (`EmbeddingTopics`) can be joined by their vectors")
    a, b = one.encoder, other.encoder
    assert isinstance(a, Centroids)
    assert isinstance(b, Centroids)
    prints = [encoder.architecture["fingerprint"] for encoder in (a, b)]
    if (a.embedding, a.width) != (b.embedding, b.width) or prints[0] != prints[1]:
        raise InputError(
            f"the models have other embeddings: '{a.embedding}' ({a.width} numbers, fingerprint {prints[0]}) and "
            f"'{b.embedding}' ({b.width}, {prints[1]}). Train both with one"
        )


def _mean_of(model: Topics) -> _Mean:
    encoder = model.encoder
    assert isinstance(encoder, Centroids)
    centre = np.asarray(encoder.centre, np.float64)
    away = np.sqrt(max(1.0 - float(centre @ centre), 0.0)) * encoder.least / OUTLIERS
    return _Mean(centre + away[:, None] * encoder.centroids, np.asarray(encoder.statistics[1]), centre)


def _directions(vectors: Array, centre: Array) -> F64:
    away = vectors - centre
    return np.asarray(away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12))


def _encoder(one: Topics, vectors: F64, documents: F64, centre: F64, words: int) -> Centroids:
    encoder = one.encoder
    assert isinstance(encoder, Centroids)
    whole = np.sqrt(max(1.0 - float(centre @ centre), 1e-12))
    mean = np.minimum(np.linalg.norm(vectors - centre, axis=1) / whole, 1.0)
    return Centroids.of(
        centre, _directions(vectors, centre), OUTLIERS * mean, documents, words, encoder.embedding,
        encoder.architecture["fingerprint"],
    )  # fmt: skip
