"""A hierarchy of topics: the two most similar ones are joined, and so on, until one is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import InputError
from tertulia.models.continuity import shared_mass

if TYPE_CHECKING:
    import polars as pl

    from tertulia.models.topics import Topics

_RELEVANCE = 0.6


def hierarchy_of(model: Topics, words: int) -> pl.DataFrame:
    """Tabulate the joins, the most similar topics first; nothing but the model is used.

    Clusters of vectors are compared by the cosines of their centroids, other topics by the mass that they share. The
    distance of two groups of topics is the mean over their pairs.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    from tertulia.models.frame import Frame

    K = model.n_topics
    if K < 2:
        raise InputError("a hierarchy needs two topics, and the model has one")
    distances = _distances(model)
    joins = linkage(squareform(distances, checks=False), method="average")
    weights = model.alpha / model.alpha.sum() if model.weights is None else model.weights
    members: list[list[int]] = [[k] for k in range(K)]
    names = ("node", "left", "right", "distance", "weight", "topics", "words")
    rows: dict[str, list[object]] = {name: [] for name in names}
    overall = weights @ model.topic_word
    for one, other, distance, _ in joins.tolist():
        group = sorted(members[int(one)] + members[int(other)])
        values = (len(members), *sorted((int(one), int(other))), distance, float(weights[group].sum()), group)
        for name, value in zip(rows, values, strict=False):
            rows[name].append(value)
        rows["words"].append(" ".join(_words(model, weights, group, overall, words)))
        members.append(group)
    return Frame(rows)


def _distances(model: Topics) -> F64:
    from tertulia.models.vectors.centroids import Centroids

    if isinstance(model.encoder, Centroids):
        similar = np.asarray(model.encoder.centroids @ model.encoder.centroids.T, np.float64)
    else:
        similar = shared_mass(model.topic_word, model.topic_word)
    found = np.maximum(1.0 - (similar + similar.T) / 2.0, 0.0)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _words(model: Topics, weights: Array, group: list[int], overall: Array, n: int) -> list[str]:
    """Return the words that tell a group from all topics: by log probability and log lift, as `distinctive_words`."""
    own = weights[group] / max(float(weights[group].sum()), 1e-12)
    mixture = np.maximum(own @ model.topic_word[group], 1e-12)
    relevance = _RELEVANCE * np.log(mixture) + (1.0 - _RELEVANCE) * np.log(mixture / np.maximum(overall, 1e-12))
    return [model.vocabulary.words[v] for v in np.argsort(-relevance, kind="stable")[:n]]
