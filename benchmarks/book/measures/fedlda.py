"""FedLDA's measures: one mechanism's model, figures 3 and 4, theorem 2, budgets and tuples."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.applications.labels import USERS, classify, configuration_of, score
from benchmarks.book import cells
from benchmarks.fedlda.runs import (
    BETAS,
    DATASETS,
    TUNED,
    M,
    features_of,
    parts_of,
    real_epsilon,
    train,
    unigram_perplexity,
)
from benchmarks.fedlda.scale import coding
from tertulia import LDA
from tertulia._arrays import F64
from tertulia.metrics import completion, perplexity_plugin
from tertulia.privacy.mechanisms.perturbation import Perturbation, heads, redraw_probability

Scores = dict[str, float]
FIGURE_3 = (  # the paper's example: words in descending order for each topic, topic shares, the place of "cat"
    np.array([
        [0.6, 0.2, 0.1, 0.05, 0.02, 0.02, 0.01],
        [0.8, 0.1, 0.04, 0.03, 0.01, 0.01, 0.01],
        [0.5, 0.2, 0.1, 0.1, 0.08, 0.01, 0.01],
        [0.7, 0.1, 0.1, 0.06, 0.02, 0.01, 0.01],
        [0.7, 0.2, 0.03, 0.02, 0.02, 0.02, 0.01],
    ]),
    np.array([0.6, 0.2, 0.1, 0.08, 0.02]),
    np.array([0, 1, 6, 4, 4]),
)  # fmt: skip


def run(seed: int, data: str, mechanism: str, rounds: int, **settings: Any) -> Scores:
    """Score one mechanism: perplexity of others, of the users' own documents (the paper's), and in each round.

    Beta is chosen for each mechanism by the users who choose, after at most 30 rounds.
    """
    tuning = {"data": data, "mechanism": mechanism, "rounds": min(rounds, TUNED)}
    tuning |= {key: settings[key] for key in ("sampler",) if key in settings}
    by_beta = {b: cells.measure(__name__ + ":tune", {**tuning, "beta": b}, 0)["scores"]["validation"] for b in BETAS}
    beta = min(BETAS, key=by_beta.__getitem__)
    model, parts = train(data, mechanism, rounds, seed, beta=beta, **settings), parts_of(data)
    phi, alpha = model.topics.topic_word, model.topics.alpha
    found = {
        "test": completion(phi, alpha, parts.test).perplexity,
        "own": perplexity_plugin(phi, features_of(model.topics, parts.train), parts.train),
        "beta": beta,
    }
    kept = range(0, rounds, max(1, rounds // 20))
    return {**found, **{f"round@{i + 1}": model.validation[i] for i in kept if len(model.validation) > 1}}


def tune(seed: int, data: str, mechanism: str, rounds: int, beta: float, **settings: Any) -> Scores:
    """Score one beta on the users who choose."""
    return {"validation": train(data, mechanism, rounds, seed, beta=beta, evaluate=False, **settings).validation[-1]}


def words(seed: int, data: str) -> Scores:
    """Score the words' frequencies, on the users who choose and on others."""
    return {"test": unigram_perplexity(data), "validation": unigram_perplexity(data, "validation")}


def example(seed: int) -> Scores:
    """Compute the probability that figure 3 gives to the word "cat", by the package's own truncation."""
    ordered, theta, place = FIGURE_3
    phi = np.full((len(theta), 40), 0.0)
    for k, row in enumerate(ordered):  # each topic has words of its own, but for "cat", the word 0
        others = np.arange(1 + 7 * k, 8 + 7 * k)[: len(row) - 1]
        phi[k, others] = np.delete(row, place[k])
        phi[k, 0] = row[place[k]]
    drawn = redraw_probability(Perturbation("rrp", 7.5, 0.1), phi, theta)
    return {"cat": float(drawn[0]), "topics": float(heads(phi, 0.1)[:, 0].sum())}


@cache
def _topics(data: str, seed: int) -> F64:
    """Return topics of LDA on one machine, [K, V]."""
    users, parts = DATASETS[data], parts_of(data)
    public = {"mode": "public", "words": parts.train.vocabulary.words}
    fitted = LDA(topics=users.topics, beta=0.01, sweeps=200, vocabulary=public).fit(parts.train, seed=seed)
    return np.asarray(fitted.topic_word)


def zipf(seed: int, data: str, most: int = 200) -> Scores:
    """Fit Zipf's law to words by rank within topics: the slope in logs, its fit, and the mean curve."""
    ordered = -np.sort(-_topics(data, seed), axis=1)
    mean, ranks = ordered.mean(axis=0), np.arange(1, ordered.shape[1] + 1)
    slope, intercept = np.polyfit(np.log(ranks[:most]), np.log(mean[:most]), 1)
    residual = np.log(mean[:most]) - (slope * np.log(ranks[:most]) + intercept)
    fit = 1 - residual.var() / np.log(mean[:most]).var()
    shown = [r for r in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000) if r <= len(mean)]
    return {"slope": slope, "fit": fit, **{f"rank@{r}": mean[r - 1] for r in shown}}


def eta(seed: int, kind: str, delta: float = 0.1, vocabulary: int = 10_000) -> Scores:
    """Return the epsilon at which a mechanism perturbs a share eta of words."""
    found = {}
    for share in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
        if kind == "rrp":  # theorem 1 with gamma to infinity: eta = 1 / (delta^2 e^epsilon + 1)
            epsilon = math.log(1 / share - 1) - 2 * math.log(delta)
            again = Perturbation("rrp", epsilon, delta, math.inf).eta(vocabulary)
        else:  # kRR reports another word with probability (V - 1) / (e^epsilon + V - 1)
            epsilon = math.log(vocabulary - 1) + math.log(1 / share - 1)
            again = Perturbation("krr", epsilon, delta, math.inf).eta(vocabulary)
        if abs(again - share) > 1e-6:
            raise AssertionError(f"{kind}: eta {again} of the package, {share} of the formula")
        found[f"eta@{share:g}"] = epsilon
    return found


def theorem_2(seed: int, data: str, share: float, most: int = 100) -> Scores:
    """Perturb one topic's tokens by RRP; return the relative error of phi by the rank of the word, and the bound's.

    The topic's own words are the prior, as for a user whose topic shares are that topic alone.
    """
    phi = np.sort(_topics(data, 0)[0])[::-1]
    tokens, draws = 100_000, np.random.default_rng(seed)
    counts = draws.multinomial(tokens, phi / phi.sum())
    head = heads(phi[None], 0.1)[0]
    hit = draws.binomial(counts, share * phi[head].sum())  # perturbed words that are really replaced
    replaced = draws.multinomial(int(hit.sum()), np.where(head, phi, 0) / phi[head].sum())
    noisy = counts - hit + replaced
    error = np.abs(noisy - counts) / np.maximum(counts, 1)
    shown = [r for r in (1, 2, 5, 10, 20, 50, 100) if r <= most and counts[r - 1] > 0]
    return {f"error@{r}": error[max(0, r - 1 - r // 4) : r + r // 4].mean() for r in shown} | {
        f"bound@{r}": share * r * r for r in shown
    }


def budget(seed: int, data: str, total: float) -> Scores:
    """Return what a tuple may spend of a user's total, epsilon' / l, and how many words RRP then perturbs."""
    sampled = round(0.7 * M)
    epsilon = total / sampled
    vocabulary = len(parts_of(data).train.vocabulary)
    return {
        "epsilon of a tuple": epsilon,
        "perturbed by RRP": Perturbation("rrp", epsilon, 0.1, math.inf).eta(vocabulary),
        "perturbed by kRR": Perturbation("krr", epsilon, 0.1, math.inf).eta(vocabulary),
        "real epsilon of sound": real_epsilon(data),
    }


def coded(seed: int, data: str, ratio: float) -> Scores:
    """Return the bytes of a user's packed tuples in a round, and their number, for a share of tuples that are sent."""
    parts = parts_of(data)
    users = parts.train.select(parts.train.lengths <= M)
    found = coding(users, DATASETS[data].topics, max(1, round(ratio * M)), M)
    return {"bytes": found["bytes_per_user_round"], "places": float(max(1, round(ratio * M)))}


def labels(seed: int, task: str, mechanism: str, rounds: int, kept: bool, **changes: Any) -> Scores:
    """Score a classifier on topic features; with `kept`, from the cells of `benchmarks.applications`."""
    if kept:
        configuration = {**configuration_of(task, rounds), "mechanism": mechanism, "seed": seed}
        return score(task, configuration, changes)
    model = train(USERS[task], mechanism, rounds, seed, beta=0.1, evaluate=False, **changes)
    return classify(USERS[task], model.topics, seed)


KINDS: dict[str, Callable[..., Scores]] = {
    "run": run, "words": words, "example": example, "zipf": zipf, "eta": eta, "theorem 2": theorem_2, "budget": budget,
    "coded": coded, "labels": labels,
}  # fmt: skip


def any_of(seed: int, kind: str = "run", **arguments: Any) -> Scores:
    """Score what is named; rounds concern mechanisms alone."""
    if kind not in ("run", "labels"):
        arguments.pop("rounds", None)
    return KINDS[kind](seed, **({"kind": arguments.pop("mechanism")} if kind == "eta" else {}), **arguments)
