"""Measures of iFTM's applications: word errors of speech, classification with topic features."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.applications.classification import Found, Plan, score_kind

Scores = dict[str, float]
COMMITTED = Path(__file__).parents[2] / "results" / "applications"
QUICK = {"party": 300, "test": 200, "labels": (300,), "topics": 10, "rounds": 2, "sweeps": 5}


def classification(seed: int, kind: str, kept: bool = False, labels: tuple[int, ...] = (1000,), **sizes: Any) -> Scores:
    """Return accuracy by model and number of labels; with `kept`, from the cells of `benchmarks.applications`.

    Words alone are always there: their C serves the topics, too.
    """
    plan = Plan(**sizes) if kept else Plan(**{**sizes, "labels": tuple(labels)})
    part = "classification" if kept else ""
    found: Found = score_kind(part, plan, seed, "none", {})
    if kind != "none":
        found |= score_kind(part, plan, seed, kind, found)
    return {f"{name}@{n}": by["accuracy"] for name, scores in found.items() for n, by in scores.items()}


def speech(seed: int, decoder: str, models: int = 0) -> Scores:
    """Return word error rates by topics, of the committed run of `benchmarks.applications.speech`.

    With `models`, speak, decode and measure a small run.
    """
    if models:
        from benchmarks.applications.speech import run

        return {name: values[0] for name, values in run(True, seeds=(seed,))["wer"][decoder].items()}
    file = next(iter(sorted(COMMITTED.glob("speech-*.json"))))
    stored = json.loads(file.read_text(encoding="utf-8"))
    rates = {name: values[0] for name, values in stored["wer"][decoder].items()}
    return (
        rates
        | {f"gain low {name}": values[1] for name, values in stored["differences"][decoder].items()}
        | {f"gain high {name}": values[2] for name, values in stored["differences"][decoder].items()}
    )
