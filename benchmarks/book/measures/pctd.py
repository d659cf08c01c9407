"""PC-TD's measures: one model with all its scores, or one of its rivals."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.pctd.__main__ import real_epsilons
from benchmarks.pctd.bench import TOPICS, Bench
from benchmarks.pctd.data import articles
from tertulia import LDA, Topics
from tertulia.metrics import completion, perplexity_plugin, unigram
from tertulia.runs.scenarios import side_by_side

Scores = dict[str, float]


@cache
def _bench(corpus: str) -> Bench:
    return Bench(articles(corpus), range(1), (TOPICS,))


@cache
def _words(corpus: str) -> tuple[str, ...]:
    """Return the words that the three participants agree on."""
    bench = _bench(corpus)
    found: tuple[str, ...] = bench.fit(0, rounds=1, topics=2).vocabulary.words
    return found


def _scores(bench: Bench, model: Topics) -> Scores:
    return {"perplexity": bench.perplexity(model), **bench.coherence(model)}


def model(seed: int, corpus: str, **settings: Any) -> Scores:
    """Score PC-TD: held-out perplexity in each round and at the end, and coherence."""
    bench = _bench(corpus)
    fitted = bench.fit(seed, evaluate=True, **settings)
    rounds = [facts["perplexity"] for facts in fitted.history[1:]]
    found = {**_scores(bench, fitted), "words": float(len(fitted.vocabulary))}
    return {**found, **{f"round@{i}": value for i, value in enumerate(rounds, 1)}}


def plugin(seed: int, corpus: str, **settings: Any) -> Scores:
    """Score PC-TD by the paper's perplexity, of the training documents with their own topic shares, beside held-out."""
    bench = _bench(corpus)
    fitted = bench.fit(seed, evaluate=False, **settings)
    train = bench.corpus.train.encode(fitted.vocabulary)
    own = perplexity_plugin(fitted.topic_word, fitted.transform(train), train)
    return {"plugin": own, "perplexity": bench.perplexity(fitted)}


def alone(seed: int, corpus: str, participant: str, **settings: Any) -> Scores:
    """Score one participant's own model, over the words of all."""
    bench = _bench(corpus)
    return _scores(bench, _alone(bench, seed, corpus, participant, settings))


def _alone(bench: Bench, seed: int, corpus: str, participant: str, settings: dict[str, Any]) -> Any:
    public = {"mode": "public", "words": _words(corpus)}
    own = {participant: bench.corpus.parties[participant]}
    return bench.fit(seed, parties=own, vocabulary=public, evaluate=False, **settings)


def beside(seed: int, corpus: str, **settings: Any) -> Scores:
    """Score all participants' topics side by side, which nobody trained together."""
    bench = _bench(corpus)
    models = [_alone(bench, seed, corpus, name, settings) for name in bench.corpus.parties]
    return _scores(bench, side_by_side(models))


def lda(seed: int, corpus: str, topics: int, alpha: float, learn_alpha: bool = False, sweeps: int = 200) -> Scores:
    """Score LDA on the pooled articles; `alpha` is the sum over topics."""
    bench = _bench(corpus)
    public = {"mode": "public", "words": _words(corpus)}
    method = LDA(topics=topics, alpha=alpha, learn_alpha=learn_alpha, beta=0.01, sweeps=sweeps, vocabulary=public)
    return _scores(bench, method.fit(bench.corpus.train, seed=seed).topics_)


def nothing(seed: int, corpus: str) -> Scores:
    """Score the words' frequencies, which need no topics."""
    bench, vocabulary = _bench(corpus), _bench(corpus).fit(0, rounds=1, topics=2).vocabulary
    known = Topics(unigram(bench.corpus.train.encode(vocabulary)), vocabulary)
    return {"perplexity": completion(known.topic_word, known.alpha, bench.corpus.test.encode(vocabulary)).perplexity}


def epsilon(seed: int, corpus: str, sigma: float) -> Scores:
    """Return what a sigma costs after the paper's rounds: claimed, at a token, a replaced word, a document."""
    levels = real_epsilons(_bench(corpus).corpus.train)
    return {key: value for key, value in levels[f"{sigma:g}"].items() if np.isfinite(value)}


def any_of(seed: int, kind: str = "model", **arguments: Any) -> Scores:
    """Score a model of the kind that is named; `rounds` concern PC-TD alone."""
    if kind in ("lda", "nothing", "epsilon"):
        arguments.pop("rounds", None)
    return KINDS[kind](seed, **arguments)


KINDS: dict[str, Callable[..., Scores]] = {
    "model": model, "plugin": plugin, "alone": alone, "beside": beside, "lda": lda, "nothing": nothing,
    "epsilon": epsilon,
}  # fmt: skip
