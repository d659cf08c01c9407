"""What PC-TD is worth in mode `sound`: perplexity and NPMI by epsilon of a document, three parties, secure sums.

"none" is the same mode at an epsilon so large that its noise is invisible: the same clipping and number of rounds. The
word list is a public one of English words.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import say, time_cpu
from benchmarks.privacy.corpora import Subject, real
from tertulia import PCTD
from tertulia.metrics import completion, npmi

EPSILONS = ("none", 8.0)
DELTA, PARTIES, SMOOTHING = 1e-6, 3, 0.01
NO_NOISE = 10_000.0  # as epsilon
ROUNDS, LENGTH = 20, 100
CORPORA = {"bbc": ("bbc_octis.parquet", 20)}  # with the number of topics


def measure_pctd(quick: bool) -> dict[str, dict[str, list[float]]]:
    """Measure perplexity of held-out documents and NPMI by corpus and epsilon, means over seeds (three, or one)."""
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)
    return {name: _by_epsilon(real(*corpus), 1 if quick else 3) for name, corpus in CORPORA.items()}


def _by_epsilon(subject: Subject, seeds: int) -> dict[str, list[float]]:
    found = {}
    for epsilon in EPSILONS:
        seconds, scores = time_cpu(partial(_all_scores, subject, epsilon, seeds))
        say(f"epsilon {epsilon}: perplexity and NPMI {np.round(scores, 3).tolist()}, {seconds:.0f} CPU seconds")
        found[str(epsilon)] = [round(float(score), 4) for score in np.mean(scores, axis=0)]
    return found


def _all_scores(subject: Subject, epsilon: float | str, seeds: int) -> list[tuple[float, float]]:
    return [_scores(subject, epsilon, seed) for seed in range(seeds)]


def _scores(subject: Subject, epsilon: float | str, seed: int) -> tuple[float, float]:
    settings: dict[str, Any] = {
        "topics": subject.topics,
        "mode": "sound",
        "epsilon": NO_NOISE if epsilon == "none" else epsilon,
        "delta": DELTA,
        "rounds": ROUNDS,
        "words_per_document": LENGTH,
        "vocabulary": {"mode": "public", "words": subject.train.vocabulary.words},
    }
    places = np.random.default_rng(seed).integers(0, PARTIES, subject.train.n_documents)
    parties = {f"party{n}": subject.train.select(places == n) for n in range(PARTIES)}
    model = PCTD(**settings).fit(parties, heldout=0.0, seed=seed, progress=False, federation={"secure": True})
    score = completion(model.topic_word, model.alpha, subject.heldout, smoothing=SMOOTHING).perplexity
    return float(score), float(np.mean(npmi(model, subject.train).mean))
