"""FTM's measures: log likelihood of a held-out token for parties alone, federated, pooled and conventional LDA."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks.common import imdb
from benchmarks.ftm.newsgroups import NOISY_PRIORS, conventional_curve, curve
from benchmarks.ftm.parties import FOUR, HELDOUT, THREE, World, at_random, cut, groups, world
from tertulia import FTM, LDA, Alone, Consensus, Corpus, Pooled, Topics
from tertulia.methods.ftm.alignment import MergeWarning
from tertulia.metrics import completion

Scores = dict[str, float]
CUTS: dict[str, Mapping[str, int]] = {  # documents of the papers' parties, in proportion
    "three": {"P1": 29_723, "P2": 59_445, "P3": 89_169},
    "four": {"P1": 28_000, "P2": 57_000, "P3": 80_000, "P4": 13_337},
}
VALIDATION = 0.1  # of a party's training documents, by which it chooses its number of topics


@cache
def corpus_of(data: str, size: float, parties: str, words: int) -> World:
    """Cut 20 Newsgroups by subject or in the papers' proportions, or IMDB in these; `size` is a share, or documents."""
    if data == "imdb":
        found = at_random(imdb(int(size), heldout=0)[0], CUTS[parties])
    elif parties in ("subjects", "four subjects"):
        found = cut(groups(), THREE if parties == "subjects" else FOUR, size)
    else:
        found = at_random(Corpus.concatenate(list(cut(groups(), THREE, size).values())), CUTS[parties])
    return world(found, max_words=words)


def _priors(small: World, **settings: Any) -> dict[str, Any]:
    return {"vocabulary": small.words, **NOISY_PRIORS, "learn_alpha": False, **settings}


def _fit(small: World, method: Any, seed: int, parties: Mapping[str, Corpus] | None = None, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MergeWarning)
        return method.fit(parties or small.parties, workers=1, heldout=HELDOUT, seed=seed, progress=False, **options)


@cache
def _alone(seed: int, where: tuple[Any, ...], model: str, sweeps: int, tried: tuple[int, ...]) -> dict[str, Topics]:
    """Train each party's own model with the number of topics that is best on its own validation documents."""
    small, found = corpus_of(*where), {}
    for party, corpus in small.parties.items():
        train = corpus.split(HELDOUT)[0]
        known, choosing = train.split(VALIDATION, seed=7)
        scores = {}
        for K in tried if len(tried) > 1 else ():
            fitted = Alone(**_priors(small, topics=K, model=model), sweeps=sweeps)
            own = fitted.fit({party: known}, heldout=0.0, seed=seed, progress=False).local[party]
            scores[K] = completion(own.topic_word, own.alpha, choosing.encode(own.vocabulary)).perplexity
        K = min(scores, key=scores.__getitem__) if scores else tried[0]
        chosen = Alone(**_priors(small, topics=K, model=model), sweeps=sweeps)
        found[party] = _fit(small, chosen, seed, {party: corpus}).local[party]
    return found


def alone(seed: int, where: Sequence[Any], model: str, sweeps: int, tried: Sequence[int]) -> Scores:
    """Score each party's own model, and all of them side by side."""
    small, own = corpus_of(*where), _alone(seed, tuple(where), model, sweeps, tuple(tried))
    rows = np.concatenate([topics.topic_word for topics in own.values()])
    beside = Topics(rows, next(iter(own.values())).vocabulary, np.full(len(rows), NOISY_PRIORS["alpha"] / len(rows)))
    found = {party: small.score(topics) for party, topics in own.items()}
    counts = {f"topics {party}": float(topics.n_topics) for party, topics in own.items()}
    return {**found, **counts, "best": max(found.values()), "side by side": small.score(beside)}


def federated(
    seed: int, where: Sequence[Any], model: str, rounds: int, sweeps: int, topics: int, **settings: Any
) -> Scores:
    """Score FTM at the end and after each round."""
    small = corpus_of(*where)
    method = FTM(**_priors(small, topics=topics, model=model), rounds=rounds, sweeps=sweeps, evaluate=True, **settings)
    shared = _fit(small, method, seed)
    points = {f"round@{point['round']:g}": point["ll"] for point in curve(shared.history)}
    sent = shared.communication
    found = {"ll": small.score(shared), "topics": float(shared.n_topics)}
    return {**found, "megabytes": (sent.bytes_up + sent.bytes_down) / 1e6, **points}


def consensus(seed: int, where: Sequence[Any], rounds: int, sweeps: int, topics: int, **settings: Any) -> Scores:
    """Score Consensus with the same priors."""
    small = corpus_of(*where)
    method = Consensus(**_priors(small, topics=topics), rounds=rounds, sweeps=sweeps, evaluate=False, **settings)
    shared = _fit(small, method, seed)
    sent = shared.communication
    return {"ll": small.score(shared), "megabytes": (sent.bytes_up + sent.bytes_down) / 1e6}


def pooled(seed: int, where: Sequence[Any], model: str, sweeps: int, topics: int) -> Scores:
    """Score a model of all documents in one place; LDA with `sweeps` 0 is trained until it has settled."""
    small = corpus_of(*where)
    if sweeps:
        method = Pooled(**_priors(small, topics=topics, model=model), sweeps=sweeps)
        return {"ll": small.score(_fit(small, method, seed))}
    training = Corpus.concatenate([corpus.split(HELDOUT)[0] for corpus in small.parties.values()])
    return {"ll": small.score(LDA(**_priors(small, topics=topics)).fit(training, seed=seed).topics_)}


def conventional(seed: int, where: Sequence[Any], topics: int, rounds: int) -> Scores:
    """Score conventional distributed LDA, which synchronises after every sweep, at every fifth synchronisation."""
    points = conventional_curve(corpus_of(*where), topics, rounds, seed)
    shown = [p for p in points if p["round"] in (5, 10, 20, 30, 50, 75, 100, 150, 200, 250, 300)]
    return {f"round@{point['round']:g}": point["ll"] for point in shown}


def nothing(seed: int, where: Sequence[Any]) -> Scores:
    """Score the words' frequencies."""
    return {"ll": corpus_of(*where).unigram}


def mixed(seed: int, where: Sequence[Any], rounds: int, sweeps: int, topics: Sequence[int]) -> Scores:
    """Score parties with different numbers of topics, and one with SentenceLDA."""
    small = corpus_of(*where)
    method = FTM(**_priors(small, topics=topics[0]), rounds=rounds, sweeps=sweeps, evaluate=False)
    own: dict[str, dict[str, Any]] = {p: {"topics": K} for p, K in zip(small.parties, topics, strict=True)}
    next(iter(own.values()))["model"] = "sentence"
    shared = _fit(small, method, seed, party_settings=own)
    return {"ll": small.score(shared), "topics": float(shared.n_topics)}


KINDS: dict[str, Callable[..., Scores]] = {
    "alone": alone, "federated": federated, "consensus": consensus, "pooled": pooled, "conventional": conventional,
    "nothing": nothing, "mixed": mixed,
}  # fmt: skip


def any_of(seed: int, kind: str, **arguments: Any) -> Scores:
    """Score what is named."""
    return KINDS[kind](seed, **arguments)
