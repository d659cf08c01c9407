"""Comparison of the topics of two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from tertulia.metrics.similarity import Tops
    from tertulia.models.topics import Topics

_SAME = 0.3  # least similarity of two topics that count as one; FTM uses the same for topics of different parties


class Comparable:
    """The methods of `Topics` that compare it with another model."""

    def similar(self, other: Topics, *, top: int = 50) -> pl.DataFrame:
        """Find each topic's most similar topic in another model, by weighted Jaccard on the top words.

        If the vocabularies differ, topics are compared on the words that both models know.
        """
        return best_matches(cast("Topics", self), other, top)

    def compare(self, other: Topics, *, min_similarity: float = _SAME, top: int = 50, words: int = 10) -> pl.DataFrame:
        """Tabulate what two models have in common: topics that are matched, only here, or only there.

        Topics are matched one to one so that the sum of their similarities (as in `similar`) is largest; pairs below
        `min_similarity` do not count. A topic without a partner has the similarity of the nearest one. The likeliest
        `words` of a pair are listed as in `both`, only `here` or only `there`. Hidden topics are left out.
        """
        return compared(cast("Topics", self), other, min_similarity, top, words)

    def hierarchy(self, *, words: int = 8) -> pl.DataFrame:
        """Tabulate a hierarchy: in each row two nodes are joined, the most similar first.

        Nodes 0 to K - 1 are the topics, later ones the joins. `topics` are all that are below a node, and `words` tell
        them from the others. Only the model is used, so it costs no privacy.
        """
        from tertulia.models.hierarchy import hierarchy_of

        return hierarchy_of(cast("Topics", self), words)


def best_matches(model: Topics, other: Topics, top: int) -> pl.DataFrame:
    """Tabulate each topic of `model` with its most similar topic of `other`, most similar first."""
    from tertulia.models.frame import Frame

    similarity = similarities(model, other, top)  # [K, K of other]
    best = similarity.argmax(axis=1)
    words, other_words = model.top_words(5), other.top_words(5)
    table = Frame(
        {
            "topic": range(model.n_topics),
            "other": best,
            "similarity": similarity.max(axis=1),
            "words": [" ".join(topic) for topic in words],
            "other_words": [" ".join(other_words[k]) for k in best],
        }
    )
    return Frame(table.sort("similarity", descending=True, maintain_order=True))


def compared(model: Topics, other: Topics, min_similarity: float, top: int, words: int) -> pl.DataFrame:
    """Compare two models, see `Topics.compare`."""
    import polars as pl

    from tertulia.models.frame import Frame

    other = getattr(other, "topics_", other)  # of a trained estimator
    here, there = (np.setdiff1d(np.arange(m.n_topics), m.hidden) for m in (model, other))
    similarity = similarities(model, other, top)[np.ix_(here, there)]
    pairs = match_one_to_one(similarity, min_similarity)
    pairs = sorted(pairs, key=lambda pair: -similarity[pair])
    tops, other_tops = model.top_words(words), other.top_words(words)
    rows: list[dict[str, Any]] = []
    for i, j in pairs:
        rows.append(_row("matched", int(here[i]), int(there[j]), similarity[i, j], tops, other_tops))
    for i in (i for i in range(len(here)) if i not in {i for i, _ in pairs}):
        rows.append(_row("only here", int(here[i]), None, similarity[i].max(initial=0.0), tops, other_tops))
    for j in (j for j in range(len(there)) if j not in {j for _, j in pairs}):
        rows.append(_row("only there", None, int(there[j]), similarity[:, j].max(initial=0.0), tops, other_tops))
    table = pl.DataFrame(rows, schema=_COLUMNS)
    for at, column, whose in ((2, "topic", model), (4, "other", other)):
        if any(whose.names):
            named = [None if k is None else whose.names[k] for k in table[column]]
            at = min(at, table.columns.index(column) + 1)
            table = table.insert_column(at, pl.Series("name" if whose is model else "other_name", named, pl.String))
    return Frame(table)


_COLUMNS: Any = {
    "state": str, "topic": int, "other": int, "similarity": float, "both": str, "here": str, "there": str,
}  # fmt: skip


def match_one_to_one(similarity: F64, least: float) -> list[tuple[int, int]]:
    """Find the one-to-one matching with the largest sum of similarities; pairs below `least` do not count."""
    from scipy.optimize import linear_sum_assignment

    counted = np.where(similarity < least, 0.0, similarity)
    rows, columns = linear_sum_assignment(counted, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if counted[i, j] > 0]


def _row(
    state: str, topic: int | None, other: int | None, similarity: float, tops: Any, other_tops: Any
) -> dict[str, Any]:
    mine = [] if topic is None else tops[topic]
    its = [] if other is None else other_tops[other]
    return {
        "state": state,
        "topic": topic,
        "other": other,
        "similarity": float(similarity),
        "both": " ".join(word for word in mine if word in its),
        "here": " ".join(word for word in mine if word not in its),
        "there": " ".join(word for word in its if word not in mine),
    }


def similarities(model: Topics, other: Topics, top: int) -> F64:
    """Compute the weighted Jaccard of all pairs of topics, [K, K of other], on the words of both models."""
    from tertulia.metrics.similarity import weighted_jaccard

    return weighted_jaccard(*_tops(model, other, top))


def _tops(model: Topics, other: Topics, top: int) -> tuple[Tops, Tops]:
    from tertulia.metrics.similarity import top_words_sparse

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
    """Normalise each topic over the common words; a topic without any of them stays zero."""
    sums = part.sum(axis=1, keepdims=True, dtype=np.float64)
    return part / np.where(sums > 0, sums, 1.0)
