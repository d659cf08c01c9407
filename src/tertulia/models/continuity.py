"""Identity and drift of topics between a model and the model that it continues.

Topics are matched one to one, so that the sum of their similarities is largest (the Hungarian method). The similarity
of two topics is the mass that their distributions share (1 - total variation), over the words of both models. A pair
that shares `SAME` or more is the same topic and keeps its id. Any other topic is new and gets an id that no topic has
had. An earlier topic without a partner is retired, with its id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.models.topics import Topics

# 20 Newsgroups, 2,500 documents and then 5,000, 20 topics: different topics of one model share 0.03 to 0.24, a topic
# and its continuation 0.5 to 0.99.
SAME = 0.4
_TOP = 10  # top words of a topic that are compared


def keep_ids(model: Topics, last: Topics) -> Topics:
    """Give a model the ids of the model that it continues, sorted by id; `provenance["drift"]` lists all changes.

    The topics of a neural model keep their order, because its encoder depends on it.
    """
    from scipy.optimize import linear_sum_assignment  # only runs that continue a model need it

    before, now = side_by_side(last, model)
    shared = shared_mass(before, now)  # [K of last, K]
    for k, name in enumerate(model.names):  # a topic that the method has named, by its seeds, is the one of that name
        if name and name in last.names:
            shared[last.names.index(name), k] = 2.0
    rows, columns = linear_sum_assignment(shared, maximize=True)
    partner = {int(k): int(j) for j, k in zip(rows, columns, strict=True) if shared[j, k] >= SAME}
    free = max((*last.ids, *last.retired)) + 1
    ids = []
    for k in range(model.n_topics):
        ids.append(last.ids[partner[k]] if k in partner else free)
        free += k not in partner
    gone = [j for j in range(last.n_topics) if j not in partner.values()]
    drift = [
        _kept(model, k, last, partner[k], distance(before[partner[k]], now[k])) if k in partner else _new(model, k, id_)
        for k, id_ in enumerate(ids)
    ]
    drift += [_gone(last, j) for j in gone]
    retired = tuple(sorted((*last.retired, *(last.ids[j] for j in gone))))
    order = np.arange(model.n_topics) if model.encoder is not None else np.argsort(ids)
    names, unseen = dict(zip(last.ids, last.names, strict=True)), {last.ids[j] for j in last.hidden}
    return replace(
        model, topic_word=model.topic_word[order], alpha=model.alpha[order],
        weights=None if model.weights is None else model.weights[order], ids=tuple(ids[k] for k in order),
        names=[names.get(ids[k], "") for k in order],
        hidden=tuple(place for place, k in enumerate(order) if ids[k] in unseen),
        retired=retired, provenance=model.provenance | {"drift": sorted(drift, key=lambda row: row["topic"])},
    )  # fmt: skip


def side_by_side(a: Topics, b: Topics) -> tuple[F64, F64]:
    """Return the topics of two models, [K of a, W] and [K of b, W], over the words of b and then the rest of a."""
    known = b.vocabulary.lookup(a.vocabulary.words)  # [V of a] the word's number in b, or -1
    V, others = len(b.vocabulary), int((known < 0).sum())
    first = np.zeros((a.n_topics, V + others))
    first[:, np.where(known >= 0, known, V + np.cumsum(known < 0) - 1)] = a.topic_word
    return first, np.pad(b.topic_word.astype(np.float64), ((0, 0), (0, others)))


def shared_mass(p: Array, q: Array) -> F64:
    """Compute the mass that each pair of topics has in common, [K of p, K of q]."""
    return np.array([np.minimum(topic, q).sum(axis=1) for topic in p])


def distance(p: Array, q: Array) -> float:
    """Compute the Jensen-Shannon distance of two distributions: 0 if they are equal, 1 if they share nothing.

    >>> distance(np.array([0.5, 0.5]), np.array([0.5, 0.5])), distance(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    (0.0, 1.0)
    """
    middle = (p + q) / 2
    parts = [x[x > 0] @ np.log2(x[x > 0] / middle[x > 0]) for x in (p, q)]
    return float(np.sqrt(np.clip(sum(parts) / 2, 0.0, 1.0)))


def _kept(model: Topics, k: int, last: Topics, j: int, moved: float) -> dict[str, Any]:
    """Describe the drift of a topic: its weights, its distance, and the top words that came and went."""
    before, now = _words(last, j), _words(model, k)
    return {
        "topic": last.ids[j],
        "state": "kept",
        "distance": round(moved, 4),
        "weight_before": _weight(last, j),
        "weight": _weight(model, k),
        "came": [word for word in now if word not in before],
        "went": [word for word in before if word not in now],
    }


def _new(model: Topics, k: int, id_: int) -> dict[str, Any]:
    return {"topic": id_, "state": "new", "weight": _weight(model, k), "came": _words(model, k)}


def _gone(last: Topics, j: int) -> dict[str, Any]:
    return {"topic": last.ids[j], "state": "retired", "weight_before": _weight(last, j), "went": _words(last, j)}


def _words(model: Topics, k: int) -> list[str]:
    return [model.vocabulary.words[w] for w in np.argsort(-model.topic_word[k], kind="stable")[:_TOP]]


def _weight(model: Topics, k: int) -> float | None:
    return None if model.weights is None else round(float(model.weights[k]), 6)
