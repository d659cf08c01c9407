"""Topic diversity, and the lists of top words that diversity and coherence are computed from.

Dieng, Ruiz and Blei 2020, "Topic Modeling in Embedding Spaces". Users may give topics as a model, as lists of words or
as a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.metrics.similarity import top_words_sparse


@runtime_checkable
class HasTopWords(Protocol):
    """A model that lists the top words of its topics, such as `Topics`."""

    def top_words(self, n: int = 10) -> list[list[str]]:
        """List the n top words of each topic, best first."""


TopicsLike = HasTopWords | Sequence[Sequence[str]] | Array


def top_words(topics: TopicsLike, n: int, vocabulary: Vocabulary | None = None) -> list[list[str]]:
    """List the n top words of each topic: of a model, of given lists, or of a matrix [K, V] over `vocabulary`.

    Without a vocabulary, the numbers of words stand for the words of a matrix.
    """
    if isinstance(topics, np.ndarray):
        return _of_matrix(topics, n, vocabulary)
    lists = topics.top_words(n) if isinstance(topics, HasTopWords) else [words[:n] for words in topics]
    if not lists:
        raise InputError("there is no topic to score")
    for k, words in enumerate(lists):
        _check(k, words)
    return [list(words) for words in lists]


def _of_matrix(topic_word: Array, n: int, vocabulary: Vocabulary | None) -> list[list[str]]:
    indices = top_words_sparse(topic_word, n).indices
    if vocabulary is None:
        return [[str(w) for w in topic] for topic in indices]
    if topic_word.shape[1] != len(vocabulary):
        raise InputError(
            f"topic_word has {topic_word.shape[1]} words, the vocabulary {len(vocabulary)}: "
            "encode the corpus over the model's vocabulary"
        )
    return [[vocabulary.words[w] for w in topic] for topic in indices]


def _check(k: int, words: Sequence[str]) -> None:
    if isinstance(words, str) or not all(issubclass(kind, str) for kind in {*map(type, words)}):
        raise InputError(f"topic {k} is not a list of words")
    if len(set(words)) < len(words):
        twice = next(word for word in words if list(words).count(word) > 1)
        raise InputError(f"topic {k} lists '{twice}' twice: top words must differ")


def topic_diversity(topics: TopicsLike, *, top: int = 25) -> float:
    """Return the share of unique words among the top words of all topics: 1 if no two topics share any.

    `topics` is a model, lists of words, or a matrix [K, V].

    >>> topic_diversity([["sun", "rain"], ["rain", "bank"]])
    0.75
    """
    if top < 1:
        raise InputError(f"top = {top}: look at 1 top word at least")
    words = [word for topic in top_words(topics, top) for word in topic]
    if not words:
        raise InputError("the topics hold no word")
    return len(set(words)) / len(words)
