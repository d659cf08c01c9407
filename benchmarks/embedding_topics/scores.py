"""The scores that all methods get: coherence of topics asked for and of live ones, agreement with labels, diversity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import entropy

from benchmarks.embedding_topics.corpora import Subject
from tertulia._arrays import F64, Array
from tertulia.metrics import npmi, topic_diversity

_TOP, _DIVERSE = 10, 25
Cell = dict[str, Any]


def scores(topics: Sequence[Sequence[str]], assigned: Array, nearest: Array, subject: Subject) -> Cell:
    """Score topics, best words first, and the topic of each document: -1 where it has none, and the nearest one.

    A topic that was asked for and is dead has an NPMI of 0 in `npmi_all`. NPMI is over whole documents. In `nmi` every
    document has its nearest topic; in `nmi_none` those without a topic are one more group.
    """
    lists = [list(dict.fromkeys(words))[:_DIVERSE] for words in topics]
    scored = [words for words in lists if len(words) > 1]
    each = npmi(scored, subject.corpus, top=_TOP, window=None).per_topic if scored else np.zeros(0)
    return {
        "npmi_all": float(each.sum() / max(subject.topics, len(lists))),
        "npmi_live": float(each.mean()) if scored else None,
        "live": len(lists),
        "nmi": agreement(nearest, subject.labels),
        "nmi_none": agreement(assigned, subject.labels),
        "diversity": topic_diversity(scored, top=_DIVERSE) if scored else None,
        "outside": float(np.mean(np.asarray(assigned) < 0)),
    }


def agreement(assigned: Array, labels: Sequence[str] | None) -> float | None:
    """Return the normalised mutual information (arithmetic mean) over labelled documents; -1 is a group like others."""
    if labels is None:
        return None
    known = np.array([label != "" for label in labels])
    _, found = np.unique(np.asarray(assigned)[known], return_inverse=True)
    _, true = np.unique(np.array(labels)[known], return_inverse=True)
    table: F64 = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(table, (found, true), 1.0)
    table /= table.sum()
    one, other = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    mutual = one + other - entropy(table.ravel())
    return float(2.0 * mutual / (one + other)) if one + other > 0 else 0.0
