"""FTM's figures on 20 Newsgroups: who is better than whom, what epsilon does, what rounds cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common import say
from benchmarks.ftm import conventional
from benchmarks.ftm.parties import FOUR, HELDOUT, SIX, THREE, World, at_random, cut, world
from tertulia import FTM, Alone, Consensus, Corpus, FederatedTopics, Pooled, Topics, federate

EPSILONS = (8, 9, 10, 11)
MODELS = ("lda", "sentence")
SEEDS = (0, 1, 2)
PRIORS = {"alpha": 5.0, "beta": 0.01}
NOISY_PRIORS = {"alpha": 5.0, "beta": 0.1}  # topics of noisy counts need the stronger one: then all have it
HIGH_TAU = "paper, tau 0.8"
RUN: dict[str, Any] = {"workers": 2, "heldout": HELDOUT}
Curve = list[dict[str, float]]  # round, ll, bytes


def likelihoods(corpus: Corpus, quick: bool) -> dict[str, Any]:
    """Test log likelihood of each party alone, of the federation in every mode, and of pooled models.

    Means over seeds; `ll_spread` is the largest difference between two seeds in any cell.
    """
    small = world(cut(corpus, THREE, 0.1 if quick else 0.25), max_words=1000 if quick else 2000)
    runs = [_likelihoods(small, quick, seed) for seed in SEEDS]
    counts = {model: [run["ll_federated_topics"][model] for run in runs] for model in MODELS}
    spread = {"ll_spread": _spread(runs), "ll_seeds": len(runs), "ll_federated_topics_by_seed": counts}
    return {**_mean(runs), **spread, "ll_unigram": small.unigram}


def _likelihoods(small: World, quick: bool, seed: int) -> dict[str, Any]:
    """Score all with the same fixed priors, documents and total of sweeps; `learned`: alpha was learned."""
    topics, rounds, sweeps = (10, 2, 10) if quick else (20, 3, 15)
    common = {"topics": topics, "vocabulary": small.words, **NOISY_PRIORS, "learn_alpha": False}
    method = {**common, "rounds": rounds, "sweeps": sweeps, "evaluate": False}
    run = {**RUN, "seed": seed}
    learn = {"learn_alpha": True}
    alone = Alone(**common, sweeps=rounds * sweeps).fit(small.parties, **run)
    single = {party: small.score(model) for party, model in alone.local.items()}
    clear, counts = {}, {}
    for model in MODELS:
        shared = FTM(**method, model=model).fit(small.parties, **run)
        clear[model], counts[model] = small.score(shared), float(shared.n_topics)
    weak = FTM(**{**method, **PRIORS}).fit(small.parties, **run)
    say(f"seed {seed}: alone {round_scores(single)}, federated {round_scores(clear)} with {counts} topics")

    def pool(K: int, **priors: Any) -> float:
        settings = {**common, **priors, "topics": K, "sweeps": rounds * sweeps}
        return small.score(Pooled(**settings).fit(small.parties, **run))

    counted = (topics, topics * len(small.parties))
    return {
        "ll_single": single,
        "ll_single_best": max(single.values()),
        "ll_concatenation": small.score(_side_by_side(alone)),
        "ll_federated": {str(eps): _private(small, method, eps, run) for eps in EPSILONS},
        "ll_federated_clear": clear,
        "ll_federated_topics": counts,
        "ll_federated_weak_prior": small.score(weak),
        "ll_federated_learned": small.score(FTM(**{**method, **learn}).fit(small.parties, **run)),
        "ll_pooled": {str(K): pool(K) for K in counted},
        "ll_pooled_learned": {str(K): pool(K, **learn) for K in counted},
    }


def _side_by_side(alone: FederatedTopics) -> Topics:
    """Return the parties' models side by side: what a merge that merges nothing would give."""
    topic_word = np.concatenate([model.topic_word for model in alone.local.values()])
    return Topics(topic_word, alone.vocabulary, np.full(len(topic_word), PRIORS["alpha"] / len(topic_word)))


def _private(
    small: World, method: Mapping[str, Any], epsilon: int, run: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Score every mode at one epsilon: Laplace noise in `paper`, at two thresholds, randomised response in `sound`."""

    def score(model: str, **settings: Any) -> float:
        return small.score(FTM(**method, model=model, epsilon=epsilon, **settings).fit(small.parties, **run))

    found = {
        "paper": {model: score(model, mode="paper") for model in MODELS},
        HIGH_TAU: {"lda": score("lda", mode="paper", tau=0.8)},
        "sound": {model: score(model, mode="sound") for model in MODELS},
    }
    say(f"epsilon {epsilon}: { {mode: round_scores(scores) for mode, scores in found.items()} }")
    return found


def _mean(runs: Sequence[Any]) -> Any:
    """Average equal trees of numbers."""
    if isinstance(runs[0], dict):
        return {key: _mean([run[key] for run in runs]) for key in runs[0]}
    return sum(runs) / len(runs)


def _spread(runs: Sequence[Any]) -> float:
    """Return the largest difference between two of these trees' numbers in one place, numbers of topics aside."""
    if isinstance(runs[0], dict):
        return max(_spread([run[key] for run in runs]) for key in runs[0] if key != "ll_federated_topics")
    return float(max(runs) - min(runs))


def rounds_needed(corpus: Corpus, quick: bool) -> dict[str, Any]:
    """Count the rounds to go 95 % of the way from the unigram to the final likelihood."""
    share, words = (0.25, 3000) if quick else (1.0, 8000)
    topics, rounds, synchronisations = (15, 4, 200) if quick else (30, 8, 300)
    three, four = (world(cut(corpus, plan, share), max_words=words) for plan in (THREE, FOUR))
    curves: dict[str, Curve] = {}
    T = 0
    for name, parties in {"FTM, three parties": three, "FTM, four parties": four}.items():
        method = FTM(topics=topics, rounds=rounds, sweeps=50, vocabulary=parties.words, evaluate=True, **PRIORS)
        shared = method.fit(parties.parties, **RUN)
        T = T or shared.n_topics
        curves[name] = curve(shared.history)
        say(f"{name}: {shared.n_topics} topics, {[round(p['ll'], 3) for p in curves[name]]}")
    curves["conventional, three parties"] = conventional_curve(three, T, synchronisations)
    ends = {name: points[-1]["ll"] for name, points in curves.items()}
    goals = {name: _goal(three.unigram, ends[name]) for name in curves}
    first, second, third = curves
    return {
        "rounds_to_95": first_round(curves[first], goals[first]),
        "sweeps_to_95": _sweeps(first_round(curves[first], goals[first]), 50),
        "conventional_rounds_to_95": first_round(curves[third], goals[first]),  # the same likelihood
        "conventional_rounds_to_95_of_its_own": first_round(curves[third], goals[third]),
        "rounds_to_95_four_parties": first_round(curves[second], goals[second]),
        "bytes_to_95": _bytes(curves[first], goals[first]),
        "conventional_bytes_to_95": _bytes(curves[third], goals[first]),
        "rounds_unigram": three.unigram,
        "curves": curves,
    }


def conventional_curve(three: World, topics: int, rounds: int, seed: int = 0) -> Curve:
    """Score the conventional method every five rounds."""
    facts: list[Mapping[str, Any]] = []
    config = {"words": three.words["words"], "topics": topics, "rounds": rounds, "every": 5, "smoothing": 0.0, **PRIORS}
    found = federate(
        conventional.train, three.parties, config=config, seed=seed, **RUN,
        observe=lambda kind, fact: facts.append(fact) if kind == "round" else None,
    )  # fmt: skip
    sent = _running_bytes(facts)
    say(f"conventional, {topics} topics: {[round(p['ll'], 3) for p in found[:: max(1, len(found) // 10)]]}")
    return [{**point, "bytes": sent[int(point["round"])]} for point in found]


def consensus(corpus: Corpus, quick: bool) -> dict[str, Any]:
    """Compare counting together with pooling, at the same number of topics and the same total of sweeps."""
    parties = cut(corpus, SIX, 0.3 if quick else 1.0)
    everything = Corpus.concatenate(list(parties.values()))
    splits = {"natural": parties, "iid": at_random(everything, {f"p{i}": i for i in range(1, 7)})}
    found = {}
    for name, split in splits.items():
        six = world(split, max_words=3000 if quick else 8000)
        common = {"topics": 20 if quick else 40, "vocabulary": six.words, **PRIORS}
        shared = Consensus(**common, rounds=8, sweeps=5, evaluate=False).fit(split, **RUN)
        pooled = Pooled(**common, sweeps=60).fit(split, heldout=HELDOUT)
        ppl, ppl_pooled = six.perplexity(shared), six.perplexity(pooled)
        found[name] = {"ppl": ppl, "ppl_pooled": ppl_pooled, "rounds": 8}
        say(f"consensus, {name}: {ppl:.0f}, pooled {ppl_pooled:.0f}: {ppl / ppl_pooled:.3f}")
    return {"consensus": found}


def curve(history: Any) -> Curve:
    """Log likelihood and bytes so far of each round that was scored."""
    sent = _running_bytes(history)
    return [
        {"round": i, "ll": -math.log(facts["perplexity"]), "bytes": sent[i]}
        for i, facts in enumerate(history)
        if "perplexity" in facts
    ]


def first_round(points: Curve, goal: float) -> int | None:
    """Return the first round at or above the goal; none: never."""
    return next((int(point["round"]) for point in points if point["ll"] >= goal), None)


def round_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Print scores of rounds."""
    return {name: round(value, 3) for name, value in scores.items()}


def _running_bytes(history: Any) -> list[float]:
    sent, total = [], 0.0
    for facts in history:
        total += sum(down + up for down, up in facts["bytes"].values())
        sent.append(total)
    return sent


def _goal(unigram: float, end: float) -> float:
    return unigram + 0.95 * (end - unigram)


def _bytes(points: Curve, goal: float) -> float | None:
    return next((point["bytes"] for point in points if point["ll"] >= goal), None)


def _sweeps(rounds: int | None, sweeps: int) -> int | None:
    return None if rounds is None else rounds * sweeps
