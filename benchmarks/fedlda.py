"""FedLDA's figures and table 2, and what they cost in truth: mechanisms side by side, a million users, honest epsilons.

The paper's mechanisms run with the paper's bookkeeping, so that its figures can be compared; `*_converging` are the
same with counts that do not drift; `sound` reports every token once and keeps its promise. Perplexity is by document
completion on users who took no part. One seed. Pictures and a Markdown table go to benchmarks/out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish, say
from benchmarks.fedlda_plot import MARKDOWN, draw, table
from benchmarks.fedlda_runs import (
    DATASETS,
    EPSILON,
    MECHANISMS,
    classify,
    corpus_of,
    heldout_perplexity,
    own_perplexity,
    train,
    unigram_perplexity,
)
from benchmarks.fedlda_scale import apart, coding
from tertulia.kernels.channel import Channel
from tertulia.privacy.channels import guarantee
from tertulia.privacy.mechanisms import Adjacency

OUT = Path(__file__).parent / "out"
M, SAMPLED = 150, 105
PAPER = ("none", "rrp", "krr", "tkrr", "hm")
SWEEPS: dict[str, dict[str, Any]] = {  # panel: the setting, its values, and who depends on it
    "epsilon": {"values": (2.5, 5.0, 7.5, 10.0), "who": ("none", "rrp", "krr", "tkrr", "hm", "sound")},
    "topics": {"values": (10, 20, 40), "who": ("none", "rrp", "krr", "tkrr", "hm", "sound")},
    "delta": {"values": (0.05, 0.1, 0.2, 0.4), "who": ("rrp", "tkrr")},
    "sample_ratio": {"values": (0.0, 0.3, 0.7, 1.0), "who": ("none", "rrp", "krr", "none_converging")},
}


def convergence(name: str, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Held-out perplexity after each round, by sampler and mechanism."""
    curves: dict[str, dict[str, list[float]]] = {}
    for sampler in ("gibbs", "mh"):
        curves[sampler] = {}
        for mechanism in (*PAPER, "none_converging", *(("sound",) if sampler == "gibbs" else ())):
            model = train(name, mechanism, rounds, evaluate=True, sampler=sampler)
            curves[sampler][mechanism] = [facts["perplexity"] for facts in model.history[1:]]
    return curves


def sweep(name: str, setting: str, rounds: int) -> dict[str, dict[float, float]]:
    """Final held-out perplexity against a setting, by mechanism."""
    values, who = SWEEPS[setting]["values"], SWEEPS[setting]["who"]
    return {
        mechanism: {
            value: heldout_perplexity(name, train(name, mechanism, rounds, **{setting: value})) for value in values
        }
        for mechanism in who
    }


def applications(rounds: int, models: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Table 2: what a classifier makes of the topics."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, users in DATASETS.items():
        if users.positive is None:
            continue
        more = {f"{m}_5": train(name, m, rounds, epsilon=5.0) for m in ("rrp", "rrp_converging")}
        found[users.task] = {m: classify(name, model) for m, model in {**models[name], **more}.items()}
        for mechanism, scores in found[users.task].items():
            say(f"  {users.task} {mechanism}: AUC {scores['auc']:.3f}")
    return found


def honest_epsilons() -> dict[str, float]:
    """What a user of M tokens really spends at delta 1e-6, by data set, in the sound mode."""
    return {
        name: guarantee(
            Channel("subset", EPSILON, len(corpus_of(name).vocabulary)), Adjacency.SUBSTITUTE, 1e-6, M
        ).epsilon
        for name in DATASETS
    }


def main() -> None:
    """Run the benchmark."""
    quick = arguments("FedLDA: figure 5, table 2, and a million users").quick
    rounds = 20 if quick else 40
    names = list(DATASETS)
    models = {name: {m: train(name, m, rounds) for m in MECHANISMS} for name in names}
    ppl = {name: {m: round(heldout_perplexity(name, model), 1) for m, model in models[name].items()} for name in names}
    own = {name: {m: round(own_perplexity(name, model), 1) for m, model in models[name].items()} for name in names}
    scores = applications(rounds, models)
    figures = ("reviews",) if quick else ("reviews", "emails")
    panels = {
        name: {
            "convergence": convergence(name, rounds),
            **{setting: sweep(name, setting, rounds) for setting in (("epsilon",) if quick else SWEEPS)},
        }
        for name in figures
    }
    OUT.mkdir(exist_ok=True)
    say(f"pictures: {[str(path) for path in draw(panels, {name: unigram_perplexity(name) for name in figures}, OUT)]}")
    packed = {name: coding(_short(name), DATASETS[name].topics, SAMPLED, M) for name in names}
    say(f"coding: {packed}")
    sizes = (10_000, 100_000, 1_000_000)
    scale = {users: apart(users) for users in sizes}
    text = table(ppl, own, scores, honest_epsilons(), packed, scale)
    (OUT / MARKDOWN).write_text(text, encoding="utf-8")
    say(text)
    finish(
        {
            "ppl": ppl,
            "auc": {task: {m: round(s["auc"], 4) for m, s in found.items()} for task, found in scores.items()},
            "users_per_s": round(sizes[-1] / scale[sizes[-1]]["seconds"]),
            "bytes_per_user_round": {name: found["bytes_per_user_round"] for name, found in packed.items()},
            "rss_mb_1e6": round(scale[sizes[-1]]["rss_mb"]),
            "scaling": {str(users): round(found["seconds"], 2) for users, found in scale.items()},
        }
    )


def _short(name: str) -> Any:
    """The users with at most M words: what the others send is cut anyway."""
    corpus = corpus_of(name)
    return corpus.select(corpus.lengths <= M)


if __name__ == "__main__":
    main()
