"""gFedNTM (2022), figures 3 and 4, and what our implementation adds: three scenarios, equality, speed.

(A) K' topics that all nodes share, (B) the topics' concentration eta, on synthetic LDA corpora; then CombinedTM on
titles of papers (a party is a field of study) and on abstracts of grants (a directorate). `--quick` makes everything
small; without it the sizes are the paper's (`--documents` and the like make them smaller), which takes many hours.

Nodes alone take as many steps as the federation, with batches of the same size; `equal_epochs` is what they reach when
they pass over their documents as often as the federation over all, which is as many times fewer steps as there are
nodes. Controls: topics drawn at random from the same prior, and LDA on the pooled documents, whose alpha begins at 50
over the topics and is learned, or stays there (`pooled_lda_fixed`).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.common import finish, parser, say
from benchmarks.gfedntm.corpora import Setting, Synthetic, dirichlet, synthetic
from benchmarks.gfedntm.package import speedups
from benchmarks.gfedntm.plot import plot, table
from benchmarks.gfedntm.real import real
from tertulia import LDA, FederatedTopics, GFedNTM, Topics
from tertulia.corpus import Corpus
from tertulia.metrics.recovery import dss, tss

PARTS = ("sweeps", "real", "equivalence", "package")
LDAS = ("pooled_lda", "pooled_lda_fixed")  # with alpha learned, and fixed
SCENARIOS = ("federated", "centralised", "non_collaborative", "equal_epochs", *LDAS, "random")
LDA_SWEEPS = 200


class Sizes(NamedTuple):
    """How large a run is."""

    setting: Setting
    training: dict[str, Any]
    shared: list[int]  # K'
    etas: list[float]
    runs: int


def sizes(chosen: argparse.Namespace) -> Sizes:
    """Return the sizes to run; the paper's by default."""
    if chosen.quick:
        small = Setting(nodes=3, words=600, topics=20, shared=4, eta=0.05, training=400, validation=60)
        return Sizes(small, {"epochs": 30, "batch_size": 100, "learning_rate": 0.005}, [2, 14], [0.2], chosen.runs)
    setting = Setting(training=chosen.documents, validation=chosen.documents // 10)
    training = {"epochs": chosen.epochs, "batch_size": 160, "learning_rate": 0.005}
    return Sizes(setting, training, chosen.shared, chosen.etas, chosen.runs)


def fit(data: Synthetic, training: dict[str, Any], **changes: Any) -> FederatedTopics:
    """Fit one model over the true words."""
    words = {"mode": "public", "words": data.validation.vocabulary.words, "max_words": None}
    model = GFedNTM(**{"topics": len(data.beta), "vocabulary": words, **training, **changes})
    return model.fit(data.parties, heldout=0.0)


def scores(data: Synthetic, models: list[Topics]) -> dict[str, float]:
    """Return TSS and DSS; of several models (by party), their means."""
    return {
        "tss": float(np.mean([tss(data.beta, m.topic_word) for m in models])),
        "dss": float(np.mean([dss(data.theta, m.transform(data.validation)) for m in models])),
    }


def score(name: str, data: Synthetic, setting: Setting, training: dict[str, Any], run: int) -> dict[str, float]:
    """Return the scores of one scenario, or of one control, in one run."""
    if name == "random":
        other = dirichlet(np.random.default_rng(1000 + run), setting.eta, setting.topics, setting.words)
        return {"tss": tss(data.beta, other)}
    if name in LDAS:
        pooled = Corpus.concatenate(list(data.parties.values())).encode(data.validation.vocabulary)
        words = {"mode": "public", "words": pooled.vocabulary.words}
        priors: dict[str, Any] = {"alpha": 50.0, "beta": setting.eta, "learn_alpha": name == "pooled_lda"}
        lda = LDA(topics=setting.topics, sweeps=LDA_SWEEPS, vocabulary=words, **priors)
        return scores(data, [lda.fit(pooled, seed=run).topics_])
    if name in ("federated", "centralised"):
        return scores(data, [fit(data, training, scenario=name, seed=run)])
    passes = training["epochs"] * (setting.nodes if name == "non_collaborative" else 1)
    return scores(data, list(fit(data, training, scenario="alone", epochs=passes, seed=run).local.values()))


def sweep(settings: list[Setting], training: dict[str, Any], runs: int, names: list[str]) -> list[dict[str, Any]]:
    """Score all scenarios and controls under each setting: means and standard deviations (`tss_sd`, `dss_sd`)."""
    rows = []
    for setting in settings:
        row: dict[str, Any] = {"shared": setting.shared, "eta": setting.eta, "runs": runs}
        every: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for run in range(runs):
            data = synthetic(setting, run)
            for name, found in every.items():
                found.append(score(name, data, setting, training, run))
                say(f"K' = {setting.shared}, eta = {setting.eta}, run {run}, {name}: {found[-1]}")
        for name, found in every.items():
            row[name] = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
            row[name] |= {f"{key}_sd": float(np.std([one[key] for one in found])) for key in found[0]}
        rows.append(row)
    return rows


def equivalence(data: Synthetic, training: dict[str, Any]) -> dict[str, float]:
    """Measure the largest difference of any weight after 200 steps in float64, and the cost of a federated step."""
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


def figures(size: Sizes, names: list[str], where: Path) -> dict[str, Any]:
    """Run both sweeps; write their plot and their table."""
    by_k = sweep([size.setting._replace(shared=k) for k in size.shared], size.training, size.runs, names)
    by_eta = sweep([size.setting._replace(eta=eta) for eta in size.etas], size.training, size.runs, names)
    where.mkdir(parents=True, exist_ok=True)
    plot(by_k, by_eta, where / "gfedntm.png")
    (where / "gfedntm.md").write_text(table(by_k, by_eta))
    say(table(by_k, by_eta))
    return {"by_k": by_k, "by_eta": by_eta}


def main() -> None:
    """Run the benchmark, or parts of it."""
    options = parser("Federated, centralised and single neural topic models")
    options.add_argument("--plots", type=Path, default=Path("runs/gfedntm"), help="where plots and tables go")
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--documents", type=int, default=10_000, help="training documents per node")
    options.add_argument("--epochs", type=int, default=30)
    options.add_argument("--shared", type=int, nargs="*", default=[5, 10, 15, 30, 40], help="values of K'")
    options.add_argument("--etas", type=float, nargs="*", default=[0.01, 0.02, 0.03, 0.04, 0.08, 1.0])
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), help="and controls")
    options.add_argument("--sets", nargs="+", choices=("titles", "grants"), default=["titles", "grants"])
    options.add_argument("--titles", type=int, default=3200, help="titles of papers per field")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    size = sizes(chosen)
    result: dict[str, Any] = {}
    if "sweeps" in chosen.parts:
        result |= figures(size, chosen.scenarios, chosen.plots)
    if "real" in chosen.parts:
        # Grants are left out of a quick run: embedding whole abstracts takes minutes.
        sets, titles = (["titles"], 200) if chosen.quick else (chosen.sets, chosen.titles)
        result["amwmd"] = real(sets, titles, chosen.plots, 1 if chosen.quick else chosen.runs)
    if "equivalence" in chosen.parts:
        result |= equivalence(synthetic(size.setting, 0), size.training)
    if "package" in chosen.parts:
        result["ctm_package"] = raced = speedups(chosen.quick)
        result["ctm_package_speedup"] = raced and {model: race["speedup"] for model, race in raced.items()}
    finish({"benchmark": "gfedntm", **result})


if __name__ == "__main__":
    main()
