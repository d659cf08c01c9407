"""gFedNTM (2022), figures 3 and 4, and what our implementation adds: three scenarios, equality, speed, rounds.

(A) K' topics that all nodes share, (B) the topics' concentration eta, on synthetic LDA corpora; then CombinedTM on
titles of papers, a party a field of study. `--quick` scales everything down; without it the sizes are the paper's.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import finish, parser, say
from benchmarks.gfedntm_corpora import Setting, Synthetic, dirichlet, synthetic
from benchmarks.gfedntm_package import speedups
from benchmarks.gfedntm_plot import plot, table
from benchmarks.gfedntm_real import fields_of_study
from tertulia import FederatedTopics, GFedNTM, Topics
from tertulia.metrics.recovery import dss, tss

SCENARIOS = ("federated", "centralised", "alone")
NAMES = {"federated": "federated", "centralised": "centralised", "alone": "non_collaborative"}


def sizes(quick: bool) -> tuple[Setting, dict[str, Any], list[int], list[float], int]:
    """Corpus, training, K', eta and the number of runs."""
    if quick:
        small = Setting(nodes=3, words=600, topics=20, shared=4, eta=0.05, training=400, validation=60)
        return small, {"epochs": 30, "batch_size": 100, "learning_rate": 0.005}, [2, 14], [0.2], 1
    return Setting(), {"epochs": 30, "batch_size": 320}, [5, 10, 15, 30, 40], [0.01, 0.02, 0.03, 0.04, 0.08, 1.0], 3


def fit(data: Synthetic, training: dict[str, Any], **changes: Any) -> FederatedTopics:
    """One model over the true words."""
    words = {"mode": "public", "words": data.validation.vocabulary.words}
    model = GFedNTM(**{"topics": len(data.beta), "vocabulary": words, **training, **changes})
    return model.fit(data.parties, heldout=0.0)


def scores(data: Synthetic, model: FederatedTopics) -> dict[str, float]:
    """TSS and DSS; of models by party, their means."""
    models: list[Topics] = list(model.local.values()) or [model]
    return {
        "tss": float(np.mean([tss(data.beta, m.topic_word) for m in models])),
        "dss": float(np.mean([dss(data.theta, m.transform(data.validation)) for m in models])),
    }


def sweep(settings: list[Setting], training: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    """Scores of the three scenarios under each setting, and of topics drawn at random from the same prior."""
    rows = []
    for setting in settings:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in (*NAMES.values(), "random")}
        for run in range(runs):
            data = synthetic(setting, run)
            for scenario in SCENARIOS:
                found[NAMES[scenario]].append(scores(data, fit(data, training, scenario=scenario, seed=run)))
            other = dirichlet(np.random.default_rng(1000 + run), setting.eta, setting.topics, setting.words)
            found["random"].append({"tss": tss(data.beta, other)})
        means = {
            name: {key: float(np.mean([row[key] for row in rows_])) for key in rows_[0]}
            for name, rows_ in found.items()
        }
        say(f"K' = {setting.shared}, eta = {setting.eta}: {means}")
        rows.append({"shared": setting.shared, "eta": setting.eta, **means})
    return rows


def equivalence(data: Synthetic, training: dict[str, Any]) -> dict[str, float]:
    """The largest difference of any weight after 200 steps in float64; and what a federated step costs."""
    exact = {**training, "epochs": 10_000, "rounds": 200, "precision": "float64"}
    pooled = fit(data, exact, scenario="centralised")
    started = time.perf_counter()
    federated = fit(data, exact)
    seconds = time.perf_counter() - started
    assert federated.encoder is not None
    assert pooled.encoder is not None
    traffic = fit(data, {**training, "epochs": 10_000, "rounds": 3}).communication
    return {
        "equivalence_max_abs_diff": float(np.abs(federated.encoder.weights - pooled.encoder.weights).max()),
        "step_ms": seconds / 200 * 1000,
        "bytes_per_step": (traffic.bytes_up + traffic.bytes_down) / 3,
    }


def averaging(data: Synthetic, training: dict[str, Any], local_steps: int = 50) -> dict[str, float | None]:
    """How many rounds FedAvg needs for SyncOpt's TSS (less 2 %), against SyncOpt's own; no ratio if 128 do not do."""
    synced = fit(data, training)
    goal = 0.98 * tss(data.beta, synced.topic_word)
    local = {**training, "averaging": "fedavg", "local_steps": local_steps, "epochs": 100_000}
    local["batch_size"] = max(2, training["batch_size"] // len(data.parties))
    reached, rounds = 0.0, 2
    while rounds < 128 and reached < goal:
        rounds *= 2
        reached = tss(data.beta, fit(data, {**local, "rounds": rounds}).topic_word)
    syncopt = len(synced.history) - 1
    ratio = syncopt / rounds if reached >= goal else None
    return {
        "syncopt": syncopt, "fedavg": rounds, "ratio": ratio, "tss_syncopt": goal / 0.98, "tss_fedavg": reached,
    }  # fmt: skip


def main() -> None:
    """Run the benchmark."""
    options = parser("Federated, centralised and single neural topic models")
    options.add_argument("--plots", type=Path, default=Path("runs/gfedntm"), help="where plots and table go")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    setting, training, shared, etas, runs = sizes(chosen.quick)
    by_k = sweep([setting._replace(shared=k) for k in shared], training, runs)
    by_eta = sweep([setting._replace(eta=eta) for eta in etas], training, runs)
    data = synthetic(setting, 0)
    result = {
        **{
            score: {n: float(np.mean([row[n][score] for row in by_k])) for n in NAMES.values()}
            for score in ("tss", "dss")
        },
        "tss_by_k": {str(row["shared"]): {n: row[n]["tss"] for n in (*NAMES.values(), "random")} for row in by_k},
        "dss_by_k": {str(row["shared"]): {n: row[n]["dss"] for n in NAMES.values()} for row in by_k},
        "tss_by_eta": {str(row["eta"]): {n: row[n]["tss"] for n in (*NAMES.values(), "random")} for row in by_eta},
        "dss_by_eta": {str(row["eta"]): {n: row[n]["dss"] for n in NAMES.values()} for row in by_eta},
        "amwmd": fields_of_study(chosen.quick),
        **equivalence(data, training),
        "ctm_package_speedup": speedups(chosen.quick),
        "fedavg_rounds_to_syncopt_quality": averaging(data, training),
    }
    chosen.plots.mkdir(parents=True, exist_ok=True)
    plot(by_k, by_eta, chosen.plots / "gfedntm.png")
    (chosen.plots / "gfedntm.md").write_text(table(by_k, by_eta))
    say(table(by_k, by_eta))
    finish({"benchmark": "gfedntm", **result})


if __name__ == "__main__":
    main()
