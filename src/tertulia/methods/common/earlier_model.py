"""An earlier model as a start: its topics over the agreed words, and room for new ones.

Everything used of the earlier model was released with it, so this start costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertulia._arrays import F64, I64, Array, Bool
from tertulia.models import Topics

TOKENS = 10**5  # pseudo-tokens per topic: enough to keep topics nearly fixed while tokens are assigned
FADED = 0.2  # a topic has faded if it has less than this share of its expected tokens


def pseudo_counts(last: Topics, words: Sequence[str]) -> I64:
    """Return the earlier topics as counts [K, V] over the agreed words; new words have counts of 0.

    All topics get the same number of tokens: otherwise new words would go to small topics.
    """
    counts = np.zeros((last.n_topics, len(words)), np.int64)
    known = last.vocabulary.lookup(words)  # [V]
    counts[:, known >= 0] = np.rint(last.topic_word[:, known[known >= 0]] * TOKENS)
    return counts


def smooth(counts: Array, beta: float, words: I64 | None = None) -> F64:
    """Estimate topics [K, V] from their counts; of some `words` [n], only these columns [K, n]."""
    smoothed = counts + beta
    sizes = smoothed.sum(axis=1, keepdims=True)
    phi: F64 = (smoothed if words is None else smoothed[:, words]) / sizes
    return phi


def faded(counts: Array, expected: Array | None = None) -> Bool:
    """Find the topics [K] with too few tokens, given their expected shares; by default all are equal."""
    sizes = counts.sum(axis=1).astype(np.float64)
    shares = np.full(len(sizes), 1 / len(sizes)) if expected is None else np.asarray(expected)
    return np.asarray(sizes < FADED * shares * sizes.sum())


def unexplained(topics: Array, counts: Array) -> F64:
    """Return the tokens [K, V] that a topic does not explain: those beyond its expectation and two deviations.

    New words are unexplained in all topics, so only the part beyond the usual share counts for a topic.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    expected = topics * sizes
    rest = np.maximum(counts - expected - 2 * np.sqrt(expected + 1), 0.0)
    mass = rest.sum(axis=1, keepdims=True)
    usual = np.median(mass / np.maximum(sizes, 1))
    return np.asarray(rest * np.clip(1 - usual * sizes / np.maximum(mass, 1e-9), 0.0, 1.0))


def give_way(topics: Array, counts: Array, expected: Array | None, more: int) -> Bool:
    """Find the topics [K] that are replaced by new ones; `more` places are free besides.

    Faded topics are replaced. So are the smallest topics, at most a tenth of all, if other topics leave more tokens
    unexplained than they hold.
    """
    sizes, room = counts.sum(axis=1), faded(counts, expected)
    missing = np.sort(unexplained(topics, counts).sum(axis=1))[::-1]
    for k in np.argsort(sizes + room * sizes.sum(), kind="stable")[: max(1, len(sizes) // 10)]:
        places = int(room.sum()) + more
        room[k] |= places < len(missing) and missing[places] > sizes[k]
    return room


def new_topics(topics: Array, counts: Array, n: int) -> F64:
    """Return counts [n, V] for new topics to begin with: the unexplained tokens of the topics that have most of them.

    If no unexplained tokens are left, further new topics are empty, as under the prior.
    """
    found = unexplained(topics, counts)
    worst = np.argsort(-found.sum(axis=1), kind="stable")[:n]
    rows = np.zeros((n, counts.shape[1]))
    rows[: len(worst)] = np.rint(found[worst])
    return rows
