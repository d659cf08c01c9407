"""One judge for all models: the same held-out documents, the same smoothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tertulia import Corpus, Topics
from tertulia.metrics import Completion, completion

HELDOUT, VALIDATION = 0.15, 0.1
SMOOTHING = 0.01


class Judge:
    """Scores models on held-out documents, with one smoothing for all."""

    def __init__(self, parties: Mapping[str, Corpus], model: Topics) -> None:
        encoded = {party: corpus.encode(model.vocabulary) for party, corpus in parties.items()}
        self.train = {party: corpus.split(HELDOUT + VALIDATION)[0] for party, corpus in encoded.items()}
        self.heldout = {party: corpus.split(HELDOUT)[1] for party, corpus in encoded.items()}

    def everyone(self, model: Topics) -> float:
        """Return perplexity over everyone's held-out documents."""
        first, *rest = [self._score(model, corpus) for corpus in self.heldout.values()]
        return sum(rest, start=first).perplexity

    def own(self, model: Topics, party: str) -> float:
        """Return perplexity on one party's held-out documents, with the prior that the model has."""
        return self._score(model, self.heldout[party]).perplexity

    def adapt(self, model: Topics, party: str) -> float:
        """Score with a prior that is fitted to the party's training documents."""
        return self.own(model.adapt(self.train[party]), party)

    @staticmethod
    def _score(model: Topics, corpus: Corpus) -> Completion:
        return completion(model.topic_word, model.alpha, corpus, smoothing=SMOOTHING)


def flat(topic_word: Any, model: Topics) -> Topics:
    """Return topics with a flat prior of the same sum."""
    return Topics(topic_word, model.vocabulary, np.full(len(topic_word), model.alpha.sum() / len(topic_word)))


def side_by_side(*models: Topics) -> Topics:
    """Return all topics of some models, under one flat prior."""
    return flat(np.concatenate([model.topic_word for model in models]), models[0])
