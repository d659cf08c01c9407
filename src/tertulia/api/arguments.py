"""Arguments of estimators, generated from their settings by `python -m tertulia.cli.arguments`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from tertulia.corpus import TextOptions


class LDAArguments(TypedDict, total=False):
    """Of `tt.LDA`."""

    random_state: int | np.random.Generator | np.random.RandomState | None
    n_jobs: int | None
    text: TextOptions | None
    topics: int
    alpha: float
    beta: float
    learn_alpha: bool
    sweeps: int | Literal["auto"]
    sampler: Literal["auto", "blocked", "gibbs", "sparse", "warp"]
    threads: int
    vocabulary: Mapping[str, Any] | None
    max_sweeps: int
    learn_beta: bool
    seeds: Mapping[str, Sequence[str]] | None
    seed_strength: int


class EmbeddingArguments(TypedDict, total=False):
    """Of `tt.EmbeddingTopics`."""

    random_state: int | np.random.Generator | np.random.RandomState | None
    n_jobs: int | None
    text: TextOptions | None
    topics: int
    epsilon: float | None
    delta: float
    unit: Literal["document", "user"]
    embedding: str
    fingerprint: str | None
    seeds: Mapping[str, Sequence[str]] | None
    rounds: int | None
    by: Literal["month", "quarter", "year"] | None
    since: str | None
    until: str | None
    declared_documents: int | None
    vocabulary: Mapping[str, Any] | None


class NeuralArguments(TypedDict, total=False):
    """Of `tt.ProdLDA`, `tt.CombinedTM` and `tt.ZeroShotTM`."""

    random_state: int | np.random.Generator | np.random.RandomState | None
    n_jobs: int | None
    text: TextOptions | None
    threads: int
    topics: int
    embedding: str | None
    batch_size: int
    epochs: int | None
    learning_rate: float
    betas: tuple[float, float]
    validation: float
    stop_after: int
    vocabulary: Mapping[str, Any] | None
    hidden: tuple[int, ...]
    dropout: float
    alpha: float
    learn_prior: bool
    normalisation: Literal["batch", "layer"]
    precision: Literal["float32", "float64"]
    paper: Mapping[str, Any] | None
