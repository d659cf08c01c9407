"""What noise on tokens costs: perplexity on BBC news (V = 2,949) under every channel, and IMDB as the scale run."""

from __future__ import annotations

import math
import time
from typing import Any

from benchmarks.common import say
from benchmarks.ftm_parties import HELDOUT, World, bbc, reviews
from tertulia import FTM, Centralised, Consensus, NonCollaborative

TOPICS, ALPHA, BETA = 20, 5.0, 0.1
LITERAL_BETA = 0.01  # with more, the literal mode is worse still


def news(quick: bool) -> dict[str, Any]:
    """Three parties of BBC news: alone, pooled, and counting together under noise."""
    judge = bbc()
    parties = judge.parties
    common = {"topics": TOPICS, "alpha": ALPHA, "beta": BETA, "vocabulary": judge.words}
    start, rounds = (40, 6) if quick else (80, 12)  # noisy topics are merged better when they have settled
    sweeps = start + rounds * 10
    together = {**common, "rounds": rounds, "start_sweeps": start, "sweeps": 10, "evaluate": False}

    def scored(what: str, model: Any) -> float:
        ppl = judge.perplexity(model)
        say(f"BBC, {what}: {ppl:.0f}")
        return ppl

    def noisy(channel: str, epsilon: float) -> float:
        method = Consensus(**together, mode="sound", channel=channel, epsilon=epsilon)
        return scored(f"{channel} {epsilon:g}", method.fit(parties, workers=2, heldout=0.0))

    def literal(epsilon: float) -> float:
        settings = {**common, "beta": LITERAL_BETA, "rounds": 2, "sweeps": 5 if quick else 20, "evaluate": False}
        method = FTM(**settings, mode="paper", epsilon=epsilon)
        return scored(f"literal {epsilon:g}", method.fit(parties, workers=2, heldout=0.0))

    alone = NonCollaborative(**common, sweeps=sweeps).fit(parties, workers=2, heldout=0.0)
    pooled = Centralised(**common, sweeps=sweeps).fit(parties, heldout=0.0)
    return {
        "ppl_unigram": math.exp(-judge.unigram),
        "ppl_single_best": min(scored(f"{name} alone", model) for name, model in alone.local.items()),
        "ppl_nonprivate": scored("pooled", pooled),
        "ppl_consensus_clear": scored("counting together", Consensus(**together).fit(parties, workers=2, heldout=0.0)),
        "ppl_krr": {f"{epsilon:g}": noisy("krr", epsilon) for epsilon in (10, 8)},
        "ppl_laplace_aware": {f"{epsilon:g}": noisy("laplace", epsilon) for epsilon in (11, 8)},
        "ppl_literal": {f"{epsilon:g}": literal(epsilon) for epsilon in (11, 8)},
    }


def scale(quick: bool) -> dict[str, Any]:
    """IMDB in three parties, by randomised response: no report is longer than a word, whatever the vocabulary."""
    imdb = reviews(5000 if quick else None, max_words=5000 if quick else 10_000)
    common = {"topics": 20 if quick else 50, "alpha": 5.0, "beta": 0.05, "vocabulary": imdb.words}
    rounds = 4 if quick else 8
    pooled = Centralised(**common, sweeps=20 + 5 * rounds).fit(imdb.parties, heldout=HELDOUT)
    plain, scores, seconds = imdb.perplexity(pooled), {}, {}
    for epsilon in (11, 9):
        method = Consensus(
            **common, rounds=rounds, start_sweeps=20, sweeps=5, mode="sound", channel="krr", epsilon=epsilon,
        )  # fmt: skip
        scores[str(epsilon)], seconds[str(epsilon)] = _timed(imdb, method)
        say(f"IMDB, krr {epsilon}: {scores[str(epsilon)]:.0f}, pooled {plain:.0f}")
    found = {"ppl_unigram": math.exp(-imdb.unigram), "ppl_nonprivate": plain, "ppl_krr": scores, "seconds": seconds}
    return {"imdb": {**found, "documents": sum(corpus.n_documents for corpus in imdb.parties.values())}}


def _timed(imdb: World, method: Consensus) -> tuple[float, float]:
    started = time.perf_counter()
    model = method.fit(imdb.parties, workers=2, heldout=HELDOUT)
    seconds = time.perf_counter() - started
    return imdb.perplexity(model), seconds
