"""Seeded topics in FTM's merge: the topics of one place are one global topic, and the others are merged beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.methods.ftm.integration import Merged

Models = Sequence[tuple[Array, int]]  # topic-word rows and number of documents, of each party


def merge_beside(models: Models, seeded: int, merge: Callable[[Models], Merged]) -> Merged:
    """Merge the first `seeded` topics of all parties by their places, and the others by `merge`.

    >>> models = [(np.array([[0.9, 0.1], [0.5, 0.5]]), 30), (np.array([[0.5, 0.5], [0.5, 0.5]]), 10)]
    >>> merged = merge_beside(models, 1, lambda others: Merged(others[0][0], np.array([40.0]), np.array([0, 0])))
    >>> merged.topic_word[0].round(2), merged.part_of
    (array([0.8, 0.2]), array([0, 1, 0, 1]))
    """
    if not seeded:
        return merge(models)
    if min(len(rows) for rows, _ in models) <= seeded:
        raise InputError(f"{seeded} topics have seeds, and a party has no others: every party needs more topics")
    documents = np.array([float(count) for _, count in models])
    fixed = np.tensordot(documents / documents.sum(), np.array([rows[:seeded] for rows, _ in models]), axes=1)
    rest = merge([(rows[seeded:], count) for rows, count in models])
    ends = np.cumsum([len(rows) - seeded for rows, _ in models])[:-1]
    part_of = [np.concatenate([np.arange(seeded), seeded + own]) for own in np.split(rest.part_of, ends)]
    rows = np.concatenate([fixed.astype(rest.topic_word.dtype), rest.topic_word])
    weights = np.concatenate([np.full(seeded, documents.sum()), rest.weights])
    return Merged(rows, weights, np.concatenate(part_of))
