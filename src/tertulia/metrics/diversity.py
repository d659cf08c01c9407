"""Topic diversity (Dieng, Ruiz and Blei 2020, "Topic Modeling in Embedding Spaces")."""

from __future__ import annotations

from tertulia.errors import InputError
from tertulia.metrics._tops import TopicsLike, top_words


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
