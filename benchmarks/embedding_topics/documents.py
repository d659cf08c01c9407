"""`PrivateTopics` on the same corpora: topics private for documents without vectors."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import tertulia as tt
from benchmarks.common import say, time_cpu
from benchmarks.embedding_topics.cells import Cell, cached, summary
from benchmarks.embedding_topics.corpora import Subject
from benchmarks.embedding_topics.lazy import Lazy
from benchmarks.embedding_topics.private_words import DELTA
from benchmarks.embedding_topics.scores import scores
from tertulia.corpus.vocabulary import public
from tertulia.errors import TertuliaError

_WORDS, _TOP = 5_000, 25  # of the public list; of a topic
_NOTHING = {"npmi_all": 0.0, "live": 0}


def private_topics(subjects: Mapping[str, Lazy], epsilons: tuple[float, ...], seeds: int) -> dict[str, Any]:
    """Measure `PrivateTopics` by corpus and epsilon over secure sums."""
    return {
        name: {
            f"{epsilon:g}": summary(
                cached([name, "private_topics", epsilon, seed], lambda: _run(subject(), epsilon, seed))  # noqa: B023
                for seed in range(seeds)
            )
            for epsilon in epsilons
        }
        for name, subject in subjects.items()
    }


def _run(subject: Subject, epsilon: float, seed: int) -> Cell:
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)
    words = {"mode": "public", "words": public("english").words[:_WORDS]}
    method = tt.PrivateTopics(topics=subject.topics, vocabulary=words, epsilon=epsilon, delta=DELTA)
    parties = {name: subject.corpus.select(mine) for name, mine in subject.places.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            seconds, model = time_cpu(
                lambda: method.fit(parties, seed=seed, progress=False, federation={"secure": True})
            )
        except TertuliaError as error:
            say(f"stopped: {error}")
            return dict(_NOTHING)
        assigned = model.transform(subject.corpus).argmax(axis=1)
    return {**scores(model.top_words(_TOP), assigned, assigned, subject), "seconds": seconds}
