"""What estimators and comparisons take, for editors and type checkers; what it means stands with the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import numpy as np

from tertulia.corpus import TextOptions


class _Arguments(TypedDict, total=False):
    """Of every estimator."""

    random_state: int | np.random.Generator | np.random.RandomState | None
    n_jobs: int | None
    text: TextOptions | None
    topics: int
    alpha: float
    threads: int
    vocabulary: Mapping[str, Any] | None


class LDAArguments(_Arguments, total=False):
    """Of `tt.LDA`."""

    beta: float
    learn_alpha: bool
    learn_beta: bool
    sweeps: int | Literal["auto"]
    max_sweeps: int
    sampler: Literal["auto", "blocked", "gibbs", "dense", "sparse", "warp"]


class NeuralArguments(_Arguments, total=False):
    """Of `tt.ProdLDA`, `tt.CombinedTM` and `tt.ZeroShotTM`."""

    embedding: str | None
    batch_size: int
    epochs: int | None
    learning_rate: float
    betas: tuple[float, float]
    validation: float
    stop_after: int
    hidden: tuple[int, ...]
    dropout: float
    learn_prior: bool
    normalisation: Literal["batch", "layer"]
    precision: Literal["float32", "float64"]
    paper: Mapping[str, Any] | None
