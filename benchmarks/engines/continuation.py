"""A continued federation: four quarters, each trained from the last model, and from scratch for comparison.

The first run has half of the documents, and each quarter adds an eighth, by date; a quarter trains on all documents so
far. Both ways are scored on the same held-out documents of all parties, over the words that both models know. Seconds
are CPU seconds of whole runs. Epsilon is the amount that a word has spent at the party that spent most, after a run in
mode `sound` over every tenth document so far; parties keep their ledgers from quarter to quarter.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tertulia as tt
from benchmarks.common import OUT, newsgroups, say, time_cpu
from benchmarks.generated import generate
from tertulia._arrays import I64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.metrics.perplexity import completion
from tertulia.models import Topics
from tertulia.privacy.ledger import Ledger
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.runs.scenarios import SMOOTHING

QUARTERS = ("Q1", "Q2", "Q3", "Q4")
SEEDS = (0, 1, 2)
EPSILON = 8.0
Parties = Mapping[str, Corpus]


class Living(NamedTuple):
    """A growing corpus, and its training settings."""

    name: str
    corpus: Corpus
    party_of: list[str]  # of each document
    order: I64  # in which documents arrive
    topics: int
    min_documents: int

    def held_out(self) -> Corpus:
        """Every tenth document, for scoring only."""
        return self.corpus.select(np.sort(self.order[::10]))

    def until(self, share: float, every: int = 1) -> dict[str, Corpus]:
        """Return the parties' documents after this share of all has arrived."""
        known = np.delete(self.order, np.s_[::10])
        known = known[: round(share * len(known))][::every]
        names = np.array(self.party_of)
        return {p: self.corpus.select(np.sort(known[names[known] == p])) for p in sorted(set(self.party_of))}


def run(quick: bool) -> dict[str, Any]:
    """Measure `continue{quarter: [ppl, ids_kept, epsilon_spent, seconds, fresh_seconds]}`: means over seeds; spread."""
    living = _generated() if quick else _newsgroups()
    rows = np.array([_kept(living, seed) for seed in (SEEDS[:1] if quick else SEEDS)])  # [seeds, quarters, 6]
    mean, spread = (dict(zip(QUARTERS, x.round(4).tolist(), strict=True)) for x in (rows.mean(0), rows.std(0)))
    return {
        "continue": {quarter: row[:5] for quarter, row in mean.items()},
        "continue_anew_ppl": {quarter: row[5] for quarter, row in mean.items()},
        "continue_sd": spread,
    }


def _newsgroups() -> Living:
    corpus = newsgroups(min_documents=1, label="party")
    dates = [str(date or "") for date in corpus.table["date"].to_list()]
    order = np.argsort(dates, kind="stable")
    return Living("newsgroups20", corpus, corpus.table["label"].to_list(), order, 50, 19)


def _generated() -> Living:
    with tempfile.TemporaryDirectory() as place:
        corpus = generate(Path(place) / "corpus", 500_000, words=4_000)
        names = [f"party{i % 3}" for i in range(corpus.n_documents)]
        return Living(
            "generated", corpus.select(np.arange(corpus.n_documents)), names, np.arange(corpus.n_documents), 40, 5
        )


def _kept(living: Living, seed: int) -> list[list[float]]:
    """Return the results of one seed, from disk if they are there: remove the file to measure again."""
    path = OUT / "continue" / f"{living.name}-{seed}.json"
    if path.exists():
        say(f"continue: {path} has seed {seed}")
        return list(json.loads(path.read_text()))
    found = list(_quarters(living, seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def _quarters(living: Living, seed: int) -> Iterator[list[float]]:
    terms = {"min_documents": living.min_documents}
    few = {p: c.select(np.arange(20)) for p, c in living.until(0.5).items()}
    _fit(living, few, seed, terms, start_from=_fit(living, few, seed, terms))  # compiles kernels
    last = _fit(living, living.until(0.5), seed, terms)
    heldout = living.held_out()
    with tempfile.TemporaryDirectory() as homes:
        report: Topics | None = None
        for number, quarter in enumerate(QUARTERS, 1):
            parties, known = living.until(0.5 + number / 8), last
            seconds, last = time_cpu(partial(_fit, living, parties, seed, terms, start_from=known))
            fresh_seconds, fresh = time_cpu(partial(_fit, living, parties, seed + 10, terms))
            kept = len(set(known.ids) & set(last.ids)) / known.n_topics
            report, epsilon = _report(living, number, seed, Path(homes), report)
            both = Vocabulary(tuple(word for word in last.vocabulary.words if word in fresh.vocabulary.index))
            scores = [_perplexity(model, heldout.encode(both)) for model in (last, fresh)]
            took = f"{seconds:.1f} and {fresh_seconds:.1f} s"
            say(f"seed {seed}, {quarter}: {scores}, ids {kept}, epsilon {epsilon}, {took}")
            yield [scores[0], kept, epsilon, seconds, fresh_seconds, scores[1]]


def _fit(living: Living, parties: Parties, seed: int, terms: dict[str, Any], **more: Any) -> Topics:
    method = tt.Consensus(topics=living.topics, evaluate=False, vocabulary=terms)
    return method.fit(parties, seed=seed, heldout=0.0, **more)


def _report(living: Living, number: int, seed: int, homes: Path, last: Topics | None) -> tuple[Topics, float]:
    """Run under noise over some of the documents so far; return the most that a word has spent in all runs."""
    parties = living.until(0.5 + number / 8, every=10)
    words = tuple(sorted(living.corpus.vocabulary.words)[:2000]) if last is None else last.vocabulary.words
    method = tt.Consensus(
        topics=10, mode="sound", epsilon=EPSILON, beta=0.1, rounds=2, more_rounds=2, sweeps=1, start_sweeps=1,
        vocabulary={"mode": "public", "words": words},
    )  # fmt: skip
    homes_of = {party: {"home": str(homes / party)} for party in parties}
    model = method.fit(parties, seed=seed, heldout=0.0, party_settings=homes_of, start_from=last)
    spent = [Ledger(homes / p / "ledger.sqlite").cost(Unit.TOKEN, Adjacency.SUBSTITUTE, 0.0).epsilon for p in parties]
    return model, max(spent)


def _perplexity(model: Topics, heldout: Corpus) -> float:
    return float(
        completion(model.topic_word, model.alpha, heldout.encode(model.vocabulary), smoothing=SMOOTHING).perplexity
    )
