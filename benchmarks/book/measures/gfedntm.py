"""gFedNTM's measures: recovery of generated topics by scenario, and distances between nodes' topics."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

from benchmarks.gfedntm.__main__ import score
from benchmarks.gfedntm.corpora import Setting, Synthetic, synthetic
from benchmarks.gfedntm.real import DIRECTORATES, distances_of, parties_of

Scores = dict[str, float]
TRAINING = {"batch_size": 160, "learning_rate": 0.005}
SETS: dict[str, tuple[str, str, int]] = {  # file, column of the nodes, batch size
    "titles": ("mag_titles_fos", "label", 200),
    "grants": ("nsf_awards_fy2026", "party", 64),
}


@cache
def _data(setting: Setting, seed: int) -> Synthetic:
    return synthetic(setting, seed)


def recovery(seed: int, scenario: str, shared: int, eta: float, epochs: int, **sizes: Any) -> Scores:
    """Return TSS and DSS of one scenario, or control, on generated documents; 75 : 25 decides when training stops."""
    torch.set_num_threads(1)
    setting = Setting(shared=shared, eta=eta, **sizes)
    training = {**TRAINING, "epochs": epochs, "validation": 0.25}
    return score(scenario, _data(setting, seed), setting, training, seed)


def distances(seed: int, data: str, documents: int | None, epochs: int) -> Scores:
    """Return AMWMD from each node's own topics to those of every model, shared ones trained by SyncOpt itself."""
    torch.set_num_threads(1)
    file, column, batch = SETS[data]
    parties = parties_of(file, column, documents, DIRECTORATES if data == "grants" else None)
    found, nodes, models = distances_of(parties, batch, seed, "federated", epochs)
    scores = {f"{m}@{n}": float(found[i, j]) for i, n in enumerate(nodes) for j, m in enumerate(models)}
    n = len(nodes)
    by_model = found[:, :n].sum(axis=0) / (n - 1)  # without a node's distance to itself, which is 0
    scores |= {f"{m}@mean": float(np.mean(found[:, n + j])) for j, m in enumerate(models[n:])}
    scores |= {f"other nodes@{node}": float(np.delete(found[i, :n], i).mean()) for i, node in enumerate(nodes)}
    return {**scores, "other nodes@mean": float(by_model.mean()), "best node@mean": float(by_model.min())}
