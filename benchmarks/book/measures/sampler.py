"""Measures of LDA on one machine: other implementations by their own defaults, and ours over alpha."""

from __future__ import annotations

from functools import cache

from benchmarks.common import imdb
from benchmarks.sampler import curve_store
from benchmarks.sampler.corpora import Parts, parts
from benchmarks.sampler.trainers import Task, train
from benchmarks.sampler.worker import score
from tertulia import LDA

Scores = dict[str, float]


@cache
def _parts(corpus: str, documents: int) -> Parts:
    return imdb(documents, heldout=500) if corpus == "imdb" else parts(corpus)


def race(seed: int, trainer: str, corpus: str, topics: int, iterations: int, documents: int = 20_000) -> Scores:
    """Score one trainer's last topics: perplexity, NPMI, diversity, CPU seconds. One process trains one at a time.

    The trainer `published` is tomotopy by its default, as its curve was published.
    """
    if trainer == "published":
        return _published(f"{corpus}-{topics}-tomotopy-1000-{seed}")
    training, heldout = _parts(corpus, documents)
    seconds, last = 0.0, None
    for step in train(Task(trainer, corpus, topics, iterations, seed=seed), training):
        seconds, last = seconds + step.cpu, step
    assert last is not None
    return {**score(last.topic_word, last.alpha, training, heldout), "seconds": seconds}


def _published(name: str) -> Scores:
    """Return the last point of a published curve."""
    found = curve_store.find_or_none(name, anywhere=True)
    if found is None:
        raise KeyError(f"{name} is not among the curves of benchmarks/results/sampler_curves.jsonl")
    last = found["curve"][-1]
    return {"ppl": last["ppl"], "npmi": last["npmi"], "diversity": last["diversity"], "seconds": last["cpu_s"]}


def alpha(seed: int, corpus: str, topics: int, sweeps: int, total: float, documents: int = 3000) -> Scores:
    """Score `tt.LDA` with alpha fixed at a sum over topics, or learned where that is 0."""
    training, heldout = _parts(corpus, documents)
    public = {"mode": "public", "words": training.vocabulary.words}
    given = {"learn_alpha": True} if total == 0 else {"alpha": total, "learn_alpha": False}
    model = LDA(topics=topics, sweeps=sweeps, vocabulary=public, **given).fit(training, seed=seed).topics_
    steepness = float(model.alpha.max() / model.alpha.mean())
    return {**score(model.topic_word, model.alpha, training, heldout), "steepness": steepness}
