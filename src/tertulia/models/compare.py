"""The topics of two models side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tertulia._arrays import F64, Array
from tertulia.errors import InputError
from tertulia.metrics.similarity import Tops, top_words_sparse, weighted_jaccard

if TYPE_CHECKING:
    from tertulia.models.topics import Topics


def best_matches(model: Topics, other: Topics, top: int) -> pl.DataFrame:
    """Tabulate each topic of `model` with its most similar topic of `other`, most similar first."""
    mine, theirs = _tops(model, other, top)
    similarity = weighted_jaccard(mine, theirs)  # [K, K of other]
    best = similarity.argmax(axis=1)
    words, other_words = model.top_words(5), other.top_words(5)
    table = pl.DataFrame(
        {
            "topic": range(model.n_topics),
            "other": best,
            "similarity": similarity.max(axis=1),
            "words": [" ".join(topic) for topic in words],
            "other_words": [" ".join(other_words[k]) for k in best],
        }
    )
    return table.sort("similarity", descending=True, maintain_order=True)


def _tops(model: Topics, other: Topics, top: int) -> tuple[Tops, Tops]:
    if model.vocabulary.words == other.vocabulary.words:
        return top_words_sparse(model.topic_word, top), top_words_sparse(other.topic_word, top)
    there = other.vocabulary.lookup(model.vocabulary.words)  # [V] number of each word in the other model, or -1
    common = np.flatnonzero(there >= 0)
    if not len(common):
        raise InputError(
            "the two models share no word: topics in different languages cannot be compared by their words"
        )
    mine, theirs = _shares(model.topic_word[:, common]), _shares(other.topic_word[:, there[common]])
    return top_words_sparse(mine, top), top_words_sparse(theirs, top)


def _shares(part: Array) -> F64:
    """Give each topic its distribution over the common words only; one that lives elsewhere stays all zero."""
    sums = part.sum(axis=1, keepdims=True, dtype=np.float64)
    return part / np.where(sums > 0, sums, 1.0)
