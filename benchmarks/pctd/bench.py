"""One corpus of articles, and how models of it are trained and scored."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks.common import data
from benchmarks.pctd.data import HELDOUT, Federated
from tertulia import PCTD, Corpus, Topics
from tertulia.metrics import completion, npmi, umass

PAPER_SIGMA, TAU, TOPICS, ROUNDS = 0.25, 0.3, 20, 35
SMOOTHING = 0.01
WORDS = {"min_documents": 2, "max_share": 0.5}


class Bench(NamedTuple):
    """One corpus, and how often everything is repeated."""

    corpus: Federated
    seeds: range
    topics: tuple[int, ...]

    def fit(self, seed: int, sigma: float = 0.0, parties: Mapping[str, Corpus] | None = None, **settings: Any) -> Any:
        """Train PC-TD as in the paper, unless something else is said."""
        noise = {"mode": "paper", "sigma": sigma} if sigma else {}
        chosen = {"topics": TOPICS, "rounds": ROUNDS, "vocabulary": WORDS, "tau": TAU, "evaluate": False, **settings}
        method = PCTD(vectors=str(data("glove100_vocab.npz")), **{**noise, **chosen})
        return method.fit(parties or self.corpus.parties, heldout=HELDOUT, seed=seed)

    def perplexity(self, model: Topics) -> float:
        """Score a model on everybody's held-out articles."""
        test = self.corpus.test.encode(model.vocabulary)
        return completion(model.topic_word, model.alpha, test, smoothing=SMOOTHING).perplexity

    def coherence(self, model: Topics) -> dict[str, float]:
        """Return UMass and NPMI over all articles."""
        reference = Corpus.concatenate([self.corpus.train, self.corpus.test])
        return {"umass": umass(model, reference).mean, "npmi": npmi(model, reference).mean}


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    """Average over seeds; beside it the lowest and the highest."""
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    ends = {f"{key}_{end.__name__}": end(values) for key, values in columns.items() for end in (min, max)}
    return {key: statistics.fmean(values) for key, values in columns.items()} | ends


def convergence(models: list[Any]) -> list[float]:
    """Return held-out perplexity after each iteration, averaged over seeds."""
    runs = [model.history[1:] for model in models]
    return [statistics.fmean(facts["perplexity"] for facts in iteration) for iteration in zip(*runs, strict=True)]
