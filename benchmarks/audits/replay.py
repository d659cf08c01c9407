"""Replays of every mode on neighbours of real documents, and how many of their promises do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import polars as pl

from benchmarks.audits.cells import cell
from benchmarks.common import newsgroups
from tertulia.corpus import Corpus
from tertulia.errors import ConfigError
from tertulia.runs.replay import NOTHING_TO_AUDIT, replay
from tertulia.runs.settings import RunSettings

PARTIES, DOCUMENTS, WORDS, PER_USER = 5, 60, 1000, 3
SEEDS = (0, 1, 2)
NOTHING = "no promise"
_LDA = {"topics": 5, "rounds": 2, "sweeps": 4}
_NEURAL = {
    "topics": 5, "hidden": (16,), "mode": "doc", "epsilon": 3.0, "declared_documents": 5000, "sampling_rate": 0.3,
    "rounds": 4, "epochs": None,
}  # fmt: skip
_FEDLDA = {"name": "fedlda", "topics": 5, "rounds": 2}
_TOPICS = {"name": "private_topics", "topics": 5, "rounds": 2, "epsilon": 8.0, "adapt": False}
_EMBEDDED = {"name": "embedding_topics", "topics": 5, "rounds": 2, "epsilon": 500.0}  # so that few documents suffice
MODES: dict[str, dict[str, Any]] = {
    "ftm clear": {"name": "ftm", **_LDA},
    "ftm paper": {"name": "ftm", **_LDA, "mode": "paper", "epsilon": 8.0},
    **{
        f"ftm sound, {channel}": {"name": "ftm", **_LDA, "mode": "sound", "epsilon": 8.0, "channel": channel}
        for channel in ("krr", "subset", "laplace")
    },
    "ftm sound, sentences": {"name": "ftm", **_LDA, "mode": "sound", "epsilon": 8.0, "model": "sentence"},
    "consensus sound": {"name": "consensus", **_LDA, "mode": "sound", "epsilon": 8.0},
    "consensus sound, robust": {"name": "consensus", **_LDA, "mode": "sound", "epsilon": 8.0, "robust": True},
    "fedlda sound": {**_FEDLDA, "mode": "sound", "epsilon": 8.0},
    "fedlda sound, users": {**_FEDLDA, "mode": "sound", "user_epsilon": 60.0, "user_documents": PER_USER},
    "fedlda paper, hm": {**_FEDLDA, "mode": "paper", "epsilon": 8.0, "mechanism": "hm"},
    "fedlda paper, rrp": {**_FEDLDA, "mode": "paper", "epsilon": 7.5},
    "pctd paper": {"name": "pctd", "topics": 5, "rounds": 2, "mode": "paper"},
    "pctd sound": {"name": "pctd", "topics": 5, "rounds": 2, "mode": "sound", "epsilon": 8.0},
    "gfedntm doc": {"name": "gfedntm", **_NEURAL},
    "private topics, documents": _TOPICS,
    "private topics, users": {**_TOPICS, "unit": "user"},
    "embedding topics, documents": _EMBEDDED,
    "embedding topics, users": {**_EMBEDDED, "unit": "user"},
}  # fmt: skip
SECURE = (
    "consensus sound", "pctd sound", "gfedntm doc", "private topics, documents", "private topics, users",
    "embedding topics, documents",
)  # fmt: skip


def replay_modes(quick: bool = False) -> dict[str, Any]:
    """Count the violations of each mode, over three choices of neighbours; modes without a promise say so."""
    violations: dict[str, int | str] = {}
    compared, closest = 0, 0.0
    for name, settings in _runs():
        seeds = SEEDS[: 1 if quick else None]
        found = [cell(f"replay, {name}, {seed}", partial(_replayed, settings, seed)) for seed in seeds]
        violations[name] = NOTHING if None in found else sum(len(one["violations"]) for one in found)
        for one in found if violations[name] == 0 else ():
            compared, closest = compared + one["compared"], max(closest, one["closest"])
    return {"replay": violations, "replay_compared": compared, "replay_closest": round(closest, 6)}


def _runs() -> Iterator[tuple[str, dict[str, Any]]]:
    """List the modes, and those that secure sums change."""
    yield from ((name, {"method": method}) for name, method in MODES.items())
    yield from ((f"{name}, secure", {"method": MODES[name], "federation": {"secure": True}}) for name in SECURE)


def _replayed(settings: dict[str, Any], seed: int) -> dict[str, Any] | None:
    """Replay a run; return what was compared and found. None: it promises nothing."""
    corpora, words = _parties(seed)
    method = {**settings["method"], "vocabulary": {"mode": "public", "words": words}}
    try:
        found = replay(RunSettings(**{**settings, "method": method, "seed": seed}), corpora, seed=seed)
    except ConfigError as error:
        if str(error) != NOTHING_TO_AUDIT:
            raise
        return None
    return {
        "violations": [one.text for one in found.violations], "compared": found.compared, "closest": found.closest,
        "ended": found.ended,
    }  # fmt: skip


@lru_cache(maxsize=1)
def _newsgroups() -> Corpus:
    return newsgroups()


def _parties(seed: int) -> tuple[dict[str, Corpus], list[str]]:
    """Draw the documents of parties, with users; the list has the most frequent words."""
    corpus = _newsgroups()
    chosen = np.random.default_rng(seed).permutation(corpus.n_documents)[: PARTIES * DOCUMENTS]
    frequent = np.argsort(-corpus.document_frequency(), kind="stable")[:WORDS]
    found = {}
    for number, part in enumerate(np.array_split(chosen, PARTIES)):
        users = pl.Series("user", [f"user {number}.{i // PER_USER}" for i in range(len(part))])
        own = corpus.select(part)
        found[f"party-{number}"] = replace(own, table=own.table.with_columns(users))
    return found, [corpus.vocabulary.words[word] for word in frequent]
