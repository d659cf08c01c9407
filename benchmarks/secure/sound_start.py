"""Mode `sound`: the start of Consensus from sums of noisy reports, beside merged local topics, for each channel."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.common import newsgroups, say
from benchmarks.federation.parties import iid, natural
from benchmarks.secure.consensus import SEEDS, Parties, heldout_of, merging, run
from tertulia.corpus import Corpus, Vocabulary
from tertulia.metrics import completion

TOPICS, WORDS = 20, 3_000
CASES = (("krr", 8.0), ("krr", 16.0), ("subset", 7.0), ("laplace", 16.0))  # epsilon by substitution
STARTS = ("merged", "sums")


def sound_start(quick: bool) -> dict[str, Any]:
    """Measure both starts by perplexity: the mean of the seeds, the least, the most."""
    corpus = _frequent(newsgroups(label="party").split(0.25, seed=1)[1])
    splits: dict[str, Callable[[int], Parties]] = {
        "by subject": lambda seed: natural(corpus),
        "at random": lambda seed: iid(corpus, seed),
    }
    found: dict[str, Any] = {}
    for channel, epsilon in CASES[: 1 if quick else None]:
        for name, split in list(splits.items())[: 1 if quick else None]:
            scores: dict[str, list[float]] = {start: [] for start in STARTS}
            for seed in SEEDS[:1] if quick else SEEDS:
                parties = split(seed)
                for start, seen in scores.items():
                    seen.append(_perplexity(parties, seed, channel, epsilon, start))
                    say(f"{name}, {channel}, epsilon {epsilon:g}, {start}, seed {seed}: {seen[-1]:.1f}")
            found[f"{name}, {channel}, {epsilon:g}"] = {
                start: [round(x, 1) for x in (statistics.mean(seen), min(seen), max(seen))]
                for start, seen in scores.items()
            }
    return {"sound_start": found}


def _frequent(corpus: Corpus) -> Corpus:
    most = np.argsort(-np.bincount(corpus.words, minlength=len(corpus.vocabulary)), kind="stable")[:WORDS]
    return corpus.encode(Vocabulary(tuple(corpus.vocabulary.words[i] for i in most)))


def _perplexity(parties: Parties, seed: int, channel: str, epsilon: float, start: str) -> float:
    words = next(iter(parties.values())).vocabulary.words
    settings = {
        "name": "consensus", "topics": TOPICS, "beta": 0.1, "evaluate": False, "mode": "sound", "channel": channel,
        "epsilon": epsilon, "start_sweeps": 80, "sweeps": 10, "vocabulary": {"mode": "public", "words": words},
    }  # fmt: skip
    with merging() if start == "merged" else nullcontext():
        model = run(parties, seed, settings)
    heldout = heldout_of(parties, model.vocabulary)
    return completion(model.topic_word, model.alpha, heldout, smoothing=model.beta).perplexity
