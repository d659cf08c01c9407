"""Embedding topics by corpus and epsilon over secure sums; federated against pooled; speed."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

import tertulia as tt
from benchmarks.common import say, time_cpu
from benchmarks.embedding_topics.cells import Cell, cached, summary
from benchmarks.embedding_topics.corpora import Subject
from benchmarks.embedding_topics.lazy import Lazy
from benchmarks.embedding_topics.private_words import DELTA
from benchmarks.embedding_topics.scores import scores
from tertulia.corpus import Corpus
from tertulia.corpus.vocabulary import public
from tertulia.errors import TertuliaError

EPSILONS = (None, 8.0, 3.0, 1.0)
_TOP, _FEWER = 25, 5_000
_PUBLIC = {"mode": "public", "words": "english"}


def quality(subjects: Mapping[str, Lazy], seeds: int) -> dict[str, Any]:
    """Measure embedding topics: means and spreads over seeds, which start no cluster and draw no noise."""
    found: dict[str, Any] = {}
    for name, subject in subjects.items():
        found[name] = {
            label(epsilon): summary(
                cached([name, "ours", epsilon, seed], lambda: _run(subject(), epsilon, seed))  # noqa: B023
                for seed in range(seeds if epsilon else 3)
            )
            for epsilon in EPSILONS
        }
        say(f"{name}: {found[name]}")
    return found


def fewer_words(subjects: Mapping[str, Lazy], seeds: int) -> dict[str, Any]:
    """Measure the same over the commonest words of the list alone."""
    return {
        name: {
            label(epsilon): summary(
                cached([name, "ours", _FEWER, epsilon, seed], lambda: _run(subject(), epsilon, seed, _FEWER))  # noqa: B023
                for seed in range(seeds)
            )
            for epsilon in EPSILONS[1:]
        }
        for name, subject in subjects.items()
    }


def label(epsilon: float | None) -> str:
    """Name a column: `none` or the number."""
    return "none" if epsilon is None else f"{epsilon:g}"


def parties_of(subject: Subject) -> dict[str, Corpus]:
    """Return the parties' documents."""
    return {name: subject.corpus.select(mine) for name, mine in subject.places.items()}


def _method(subject: Subject, epsilon: float | None, words: int | None = None) -> tt.EmbeddingTopics:
    """Make the estimator, with the static embedding that all peers have the vectors of, over the public list."""
    vocabulary = _PUBLIC if words is None else {"mode": "public", "words": public("english").words[:words]}
    return tt.EmbeddingTopics(topics=subject.topics, epsilon=epsilon, delta=DELTA, vocabulary=vocabulary)


def _run(subject: Subject, epsilon: float | None, seed: int, words: int | None = None) -> Cell:
    """Train by parties, under noise over secure sums; a run that learns nothing is a cell, too."""
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)
    parties = parties_of(subject)
    options: dict[str, Any] = {} if epsilon is None else {"federation": {"secure": True}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            seconds, model = time_cpu(
                lambda: (
                    _method(subject, epsilon, words)
                    .fit(parties, seed=seed, progress=False, heldout=0, **options)
                    .topics_
                )
            )
        except TertuliaError as error:
            say(f"stopped: {error}")
            return {"npmi_all": 0.0, "npmi_live": None, "live": 0, "nmi": None, "diversity": None, "seconds": None}
    nearest = model.transform(subject.corpus).argmax(axis=1)
    return {**scores(model.top_words(_TOP), model.assign(subject.corpus), nearest, subject), "seconds": seconds}


def equal(subjects: Mapping[str, Lazy]) -> dict[str, Any]:
    """Train without noise: parties' plain sums against all documents in one place, with the same vectors."""
    return {
        name: cached([name, "equal"], lambda: _equal(subject()))  # noqa: B023
        for name, subject in subjects.items()
    }


def _equal(subject: Subject) -> Cell:
    federated, pooled = (
        _method(subject, None).fit(parties, seed=0, progress=False, heldout=0).topics_
        for parties in (parties_of(subject), {"all": subject.corpus})
    )
    same = federated.n_topics == pooled.n_topics
    apart = float(np.abs(federated.topic_word - pooled.topic_word).max()) if same else None
    agree = np.mean(federated.assign(subject.corpus) == pooled.assign(subject.corpus)) if same else None
    tops = sum(a == b for a, b in zip(federated.top_words(10), pooled.top_words(10), strict=False))
    return {
        "live_federated": federated.n_topics, "live_pooled": pooled.n_topics, "largest_difference": apart,
        "same_topic": None if agree is None else float(agree), "same_ten_words": tops / pooled.n_topics,
    }  # fmt: skip


def speed(subjects: Mapping[str, Lazy]) -> dict[str, Any]:
    """Measure CPU seconds on one machine, without noise: after embedding, and with it."""
    return {
        name: cached([name, "speed"], lambda: _speed(subject()))  # noqa: B023
        for name, subject in subjects.items()
    }


def _speed(subject: Subject) -> Cell:
    """Time a fit from a corpus, which embeds it; and the embedding alone, which is subtracted for `after`."""

    def fit(documents: int) -> None:
        given = subject.corpus.select(np.arange(min(documents, subject.corpus.n_documents)))
        _method(subject, None).fit(given, progress=False)

    fit(400)  # compiles
    took = float(np.median([time_cpu(lambda: fit(subject.corpus.n_documents))[0] for _ in range(3)]))
    return {"after": took - subject.seconds_of_vectors, "with": took}
