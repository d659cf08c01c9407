"""Topics from the last table of EmbeddingTopics: which are live, their words, and the encoder."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, Array, Bool
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.methods.common.priors import by_size
from tertulia.methods.embedding_topics.budget import BITS, LIVE, PERIODS, TABLE, Terms, deviation, threshold
from tertulia.methods.embedding_topics.settings import EmbeddingTopicsSettings
from tertulia.models import Topics
from tertulia.models.vectors.centroids import OUTLIERS, Centroids

_OVERALL = 0.02  # of a topic's mass that is every word's overall frequency
_ALPHA = 5.0  # the sum of theta's prior
_BEYOND = 0.4  # of the threshold of counts, by which a word must exceed what is expected
_DOUBT = 0.5  # documents that are added to those expected: one document alone is no lift


class Outcome(NamedTuple):
    """The totals of a run."""

    words: tuple[str, ...]
    centre: F64  # [d]
    centroids: F64  # [K, d]
    sums: Array  # [K, d] of vectors, in steps of the grid
    counts: Array  # [K, V] of words
    sizes: Array  # [K] of documents
    overall: F64  # [V] documents by word
    louder: float  # noise of totals, beside the plan's
    dated: F64 | None  # [K, P] documents by period


class Words(NamedTuple):
    """What words weigh in topics [K, V], 0 where they do not show, and which topics are live [K]."""

    weights: F64
    live: Bool


def words_of_topics(counts: F64, sizes: F64, overall: F64, spread: float) -> Words:
    """Find the words of each topic: beyond the noise, and beyond what its size makes expected.

    A word weighs its excess times the logarithm of the lift: common words have a large excess, and a small lift.

    >>> counts = np.array([[9.0, 0.0, 5.0], [1.0, 8.0, 5.0]])
    >>> words_of_topics(counts, np.array([10.0, 10.0]), counts.sum(axis=0), 0.0).weights.round(1).tolist()
    [[2.2, 0.0, 0.0], [0.0, 2.5, 0.0]]
    """
    share = sizes / max(sizes.sum(), 1e-9)
    expected = share[:, None] * np.maximum(overall, 0.0)
    excess, least = counts - expected, threshold(spread, counts.size)
    shown = (counts > least) & (excess > _BEYOND * least)
    lift = np.log1p(np.maximum(excess, 0.0) / (expected + max(spread, _DOUBT)))
    weights = np.where(shown, excess * lift, 0.0)
    needed = min(LIVE, max(counts.shape[1] // (2 * len(counts)), 1)) if spread > 0.0 else 1  # of short lists fewer
    return Words(weights, (weights > 0).sum(axis=1) >= needed)


def topics_of(found: Outcome, config: EmbeddingTopicsSettings) -> Topics:
    """Make a model of the live topics; warn of dead ones."""
    spread = found.louder * deviation(TABLE, config.part(Terms))
    counts = np.ldexp(found.counts.astype(np.float64), -BITS)
    sizes = np.maximum(np.ldexp(found.sizes.astype(np.float64), -BITS), 0.0)
    overall = np.maximum(found.overall, 0.0)
    words = words_of_topics(counts, sizes, overall, spread)
    live = np.flatnonzero(words.live)
    if not len(live):
        raise InputError(
            f"no topic has {LIVE} words above the noise at epsilon {config.epsilon}: the budget is spent, and nothing "
            "was found. Give more documents, a larger epsilon, or fewer topics"
        )
    names = [*config.seeds, *[""] * (config.topics - len(config.seeds))]
    dead = [k for k in range(config.topics) if k not in set(live.tolist())]
    if dead:
        _warn_of_dead(len(dead), [names[k] for k in dead if names[k]], config)
    rows = words.weights[live] / words.weights[live].sum(axis=1, keepdims=True)
    usual = (overall + 1e-9) / (overall + 1e-9).sum()
    return Topics(
        (1.0 - _OVERALL) * rows + _OVERALL * usual, Vocabulary(found.words), by_size(_ALPHA, sizes[live]),
        weights=np.maximum(sizes[live], 1e-6), encoder=_encoder(found, sizes, live, config),
        names=[names[k] for k in live],
        provenance={"embedding": _about(config, sizes, dead, names) | _trends(found, live, config)},
    )  # fmt: skip


def _trends(found: Outcome, live: Array, config: EmbeddingTopicsSettings) -> dict[str, Any]:
    """Return the live topics' documents by period, with the deviation of the noise on each number."""
    terms = config.part(Terms)
    if found.dated is None or terms.periods is None:
        return {}
    spread = found.louder * deviation(PERIODS, terms)
    counts = found.dated[live].round(3).tolist()
    return {"over_time": {"periods": list(terms.periods.labels), "documents": counts, "deviation": round(spread, 3)}}


def _encoder(found: Outcome, sizes: F64, live: Array, config: EmbeddingTopicsSettings) -> Centroids:
    sums = np.ldexp(found.sums.astype(np.float64), -BITS)[live]
    mean = np.minimum(np.linalg.norm(sums, axis=1) / np.maximum(sizes[live], 1.0), 1.0)
    return Centroids.of(
        found.centre, found.centroids[live], OUTLIERS * mean, np.maximum(sizes[live], 1e-6), len(found.words),
        config.embedding, config.fingerprint,
    )  # fmt: skip


def _about(config: EmbeddingTopicsSettings, sizes: F64, dead: list[int], names: list[str]) -> dict[str, Any]:
    """Say for the provenance how many topics were asked for, and what became of the others."""
    return {
        "asked": config.topics,
        "live": config.topics - len(dead),
        "dead": len(dead),
        "dead_seeds": [names[k] for k in dead if names[k]],
        "dead_share": float(sizes[dead].sum() / max(sizes.sum(), 1e-9)),
        "embedding": config.embedding,
        "fingerprint": config.fingerprint,
    }


def _warn_of_dead(dead: int, named: list[str], config: EmbeddingTopicsSettings) -> None:
    seeded = f" (of them with seeds: {', '.join(named)})" if named else ""
    why = "show too few words above the noise" if config.epsilon is not None else "have too few documents"
    warnings.warn(f"{dead} of {config.topics} topics are dead{seeded}: they {why}, and are left out", stacklevel=2)
