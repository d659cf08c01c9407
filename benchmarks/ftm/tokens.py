"""What noise on tokens costs: perplexity on BBC news (V = 2,949) under every channel, and IMDB as the scale run."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.common import say
from benchmarks.ftm.parties import HELDOUT, Parties, World, bbc, reviews
from tertulia import FTM, Consensus, Corpus, Pooled

TOPICS, ALPHA, BETA = 20, 5.0, 0.1
LITERAL_BETA = 0.01  # with more, the literal mode is worse still
SEEDS = (0, 1, 2)


def news(quick: bool) -> dict[str, Any]:
    """Score BBC news in three parties that are alike: alone, pooled, and together under noise; or not alike.

    Alone and pooled are the same method with one party, so that all models are means over as many sweeps.
    """
    alike, subjects, seeds = BBC(bbc(), quick), BBC(bbc(by_subject=True), quick), SEEDS[:1] if quick else SEEDS
    return {
        "ppl_unigram": math.exp(-alike.judge.unigram),
        "ppl_single_best": alike.best_alone(),
        "ppl_nonprivate": alike.score("pooled", alike.pooled),
        "ppl_consensus_clear": alike.score("counting together", alike.judge.parties),
        "ppl_krr": {
            f"{epsilon:g}": alike.noisy_perplexity("krr", epsilon, seeds)
            for epsilon in ((10, 8) if quick else (10, 9, 8.5, 8))
        },
        "ppl_laplace_aware": {f"{epsilon:g}": alike.noisy_perplexity("laplace", epsilon) for epsilon in (22, 16)},
        "ppl_literal": {f"{epsilon:g}": alike.literal_perplexity(epsilon) for epsilon in (11, 8)},
        "news_by_subject": {
            "ppl_single_best": subjects.best_alone(),
            "ppl_krr": {f"{epsilon:g}": subjects.noisy_perplexity("krr", epsilon, seeds) for epsilon in (10, 8)},
        },
    }


def settings(quick: bool) -> dict[str, Any]:
    """Choose the priors of `news` by the validation documents, under most noise and for parties alone."""
    world = bbc(validation=True)
    found = {}
    for alpha in (2.0, 5.0):
        for beta in (0.05, 0.1, 0.2):
            tried = BBC(world, quick, alpha, beta)
            found[f"{alpha:g}, {beta:g}"] = {"krr": tried.noisy_perplexity("krr", 8), "single_best": tried.best_alone()}
    return {"ppl_by_alpha_and_beta": found}


@dataclass(frozen=True)
class BBC:
    """Models of BBC news, counted together by three parties or by one, and their perplexity."""

    judge: World
    quick: bool
    alpha: float = ALPHA
    beta: float = BETA

    @property
    def pooled(self) -> Parties:
        """All documents at one party."""
        return {"all": Corpus.concatenate(list(self.judge.parties.values()))}

    def score(self, what: str, parties: Parties, seed: int = 0, **noise: Any) -> float:
        """Return perplexity of counting together."""
        method = Consensus(
            topics=TOPICS, alpha=self.alpha, beta=self.beta, vocabulary=self.judge.words,
            rounds=6 if self.quick else 16, sweeps=10, evaluate=False, **noise,
        )  # fmt: skip
        ppl = self.judge.perplexity(method.fit(parties, workers=2, heldout=0.0, seed=seed))
        say(f"BBC, {what}: {ppl:.0f}")
        return ppl

    def best_alone(self) -> float:
        """Return the lowest perplexity of a single party."""
        return min(self.score(f"{name} alone", {name: own}) for name, own in self.judge.parties.items())

    def noisy_perplexity(self, channel: str, epsilon: float, seeds: Sequence[int] = SEEDS[:1]) -> float:
        """Return the mean perplexity over seeds; the noise is drawn again for each."""
        what, noise = f"{channel} {epsilon:g}", {"mode": "sound", "channel": channel, "epsilon": epsilon}
        return sum(self.score(what, self.judge.parties, seed, **noise) for seed in seeds) / len(seeds)

    def literal_perplexity(self, epsilon: float) -> float:
        """Score the papers' own method."""
        method = FTM(
            topics=TOPICS, alpha=self.alpha, beta=LITERAL_BETA, vocabulary=self.judge.words, rounds=2,
            sweeps=5 if self.quick else 20, evaluate=False, mode="paper", epsilon=epsilon,
        )  # fmt: skip
        ppl = self.judge.perplexity(method.fit(self.judge.parties, workers=2, heldout=0.0))
        say(f"BBC, literal {epsilon:g}: {ppl:.0f}")
        return ppl


def scale(quick: bool) -> dict[str, Any]:
    """Run IMDB in three parties, by randomised response: a report is as long as a word for any vocabulary."""
    imdb = reviews(5000 if quick else None, max_words=5000 if quick else 10_000)
    common = {"topics": 20 if quick else 50, "alpha": 5.0, "beta": 0.05, "vocabulary": imdb.words}
    rounds = 4 if quick else 8
    pooled = Pooled(**common, sweeps=20 + 5 * rounds).fit(imdb.parties, heldout=HELDOUT)
    plain, scores, seconds = imdb.perplexity(pooled), {}, {}
    for epsilon in (11, 9):
        method = Consensus(
            **common, rounds=rounds, sweeps=5, mode="sound", channel="krr", epsilon=epsilon,
        )  # fmt: skip
        scores[str(epsilon)], seconds[str(epsilon)] = _fit_and_time(imdb, method)
        say(f"IMDB, krr {epsilon}: {scores[str(epsilon)]:.0f}, pooled {plain:.0f}")
    found = {"ppl_unigram": math.exp(-imdb.unigram), "ppl_nonprivate": plain, "ppl_krr": scores, "seconds": seconds}
    return {"imdb": {**found, "documents": sum(corpus.n_documents for corpus in imdb.parties.values())}}


def _fit_and_time(imdb: World, method: Consensus) -> tuple[float, float]:
    started = time.perf_counter()
    model = method.fit(imdb.parties, workers=2, heldout=HELDOUT)
    seconds = time.perf_counter() - started
    return imdb.perplexity(model), seconds
