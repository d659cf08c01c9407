"""FedLDA's figures, and what they cost in truth: mechanisms side by side, a million users, real epsilons.

Every mechanism has as many rounds, of one sweep each. By default a token's word is drawn once and counts converge;
`*_paper` are the same with the paper's bookkeeping, whose counts drift. `sound` reports every token once and keeps its
promise; `sound_user` divides the same total of a user by `user_epsilon`. Perplexity is by document completion on users
who took no part; beta is chosen on others, for each mechanism. Means over three seeds with their standard deviations;
on Sentiments some mechanisms have one seed or are left out, and all panels of the pictures have one. Beside them stand
controls: word frequencies, LDA on one machine, topics that nobody has learned. LDA on one machine is there twice: as it
comes, with alpha learned, and with FedLDA's fixed alpha.
Table 2, which predicts labels, is part of `benchmarks.applications`.
Pictures and a Markdown table go to benchmarks/out. `--only reviews` runs one data set, without pictures and
scale; `--who` chooses mechanisms and controls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.common import OUT, finish, parser, say
from benchmarks.fedlda.plot import MARKDOWN, draw, table
from benchmarks.fedlda.runs import (
    DATASETS,
    MECHANISMS,
    M,
    parts_of,
    real_epsilon,
    repeat,
    unigram_perplexity,
)
from benchmarks.fedlda.scale import coding, measure_apart
from tertulia.corpus import Corpus

SAMPLED = 105
CONTROLS = ("pooled", "pooled_fixed", "random")
WHO = (*MECHANISMS, *CONTROLS)
LONGER = "emails"  # where three times as many rounds are run too, with one seed
ONE_SEED = {("sentiments", m) for m in ("krr", "hm_paper", "rrp_paper at 5")}  # V is large: rounds take long
LEFT_OUT = {("sentiments", m) for m in ("tkrr", "tkrr_paper", "krr_paper", "rrp_anew")}
PANELS: dict[str, dict[str, Any]] = {  # the setting, its values, and who depends on it
    "epsilon": {"values": (2.5, 5.0, 7.5, 10.0), "who": ("rrp", "rrp_paper", "krr", "krr_paper", "hm_paper", "sound")},
    "user_epsilon": {"values": (30.0, 100.0, 300.0, 675.0), "who": ("sound_user",)},
    "topics": {"values": (10, 20, 40), "who": ("none", "none_paper", "rrp", "rrp_paper", "sound")},
    "delta": {"values": (0.05, 0.1, 0.2, 0.4), "who": ("rrp", "rrp_paper", "tkrr", "tkrr_paper")},
    "sample_ratio": {"values": (0.0, 0.3, 0.7, 1.0), "who": ("none", "none_paper", "rrp", "rrp_paper")},
}
Found = dict[str, dict[str, float]]  # by mechanism: mean, deviation and number of seeds of each score


def measure(name: str, rounds: int, seeds: Sequence[int], who: Sequence[str] = WHO) -> Found:
    """Score all mechanisms and controls on one data set, or some of them."""
    found = {}
    runs: dict[str, tuple[str, dict[str, Any]]] = {
        mechanism: (mechanism, {}) for mechanism in who if (name, mechanism) not in LEFT_OUT
    }
    if DATASETS[name].task:
        runs |= {f"{m} at 5": (m, {"epsilon": 5.0}) for m in ("rrp", "rrp_paper") if m in who}
    for label, (mechanism, changes) in runs.items():
        chosen = seeds[:1] if (name, label) in ONE_SEED else seeds
        found[label] = _mean(repeat(name, mechanism, rounds, chosen, **changes))
    for mechanism in ("none", "rrp", "sound") if name == LONGER and tuple(who) == WHO else ():
        found[f"{mechanism}, {3 * rounds} rounds"] = _mean(repeat(name, mechanism, 3 * rounds, seeds[:1]))
    return {"unigram": {"test": unigram_perplexity(name), "seeds": 1}, **found}


def _mean(scores: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return mean and standard deviation over seeds of each score."""
    kinds = [key for key in scores[0] if key != "validation"]
    values = {key: np.array([score[key] for score in scores]) for key in kinds}
    means = {key: float(value.mean()) for key, value in values.items()}
    spread = {f"{key} sd": float(value.std(ddof=1)) for key, value in values.items() if len(value) > 1}
    return {**means, **spread, "seeds": len(scores)}


def convergence(name: str, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return perplexity after each round, by sampler and mechanism: of the users who choose, with one seed."""
    who = {"gibbs": MECHANISMS, "mh": [m for m in MECHANISMS if not m.startswith("sound")]}
    return {
        sampler: {m: repeat(name, m, rounds, (0,), **_sampler(sampler))[0]["validation"] for m in mechanisms}
        for sampler, mechanisms in who.items()
    }


def _sampler(sampler: str) -> dict[str, str]:
    return {} if sampler == "gibbs" else {"sampler": sampler}


def panel(name: str, setting: str, rounds: int) -> dict[str, dict[float, float]]:
    """Return final perplexity against a setting, by mechanism, with one seed."""
    return {
        mechanism: {
            value: repeat(name, mechanism, rounds, (0,), **{setting: value})[0]["test"]
            for value in PANELS[setting]["values"]
        }
        for mechanism in PANELS[setting]["who"]
    }


def main() -> None:
    """Run the benchmark."""
    options = parser("FedLDA: figure 5, and a million users")
    options.add_argument("--only", choices=list(DATASETS), nargs="+", help="data sets; leaves out pictures and scale")
    options.add_argument("--who", choices=WHO, nargs="+", default=WHO, help="mechanisms and controls; with --only")
    given = options.parse_args()
    if given.who != WHO and not given.only:
        options.error("--who goes with --only: the pictures need all mechanisms")
    rounds, seeds = (20, (0,)) if given.quick else (100, (0, 1, 2))
    found = {name: measure(name, rounds, seeds, given.who) for name in given.only or DATASETS}
    packed, scale, pictures = {}, {}, []
    if not given.only:
        settings = ("epsilon",) if given.quick else tuple(PANELS)
        panels = {setting: panel("reviews", setting, rounds) for setting in settings}
        curves = {"reviews": {"convergence": convergence("reviews", rounds), **panels}}
        OUT.mkdir(exist_ok=True)
        pictures = draw(curves, {"reviews": unigram_perplexity("reviews")}, OUT)
        packed = {name: coding(_short(name), DATASETS[name].topics, SAMPLED, M) for name in DATASETS}
        scale = {users: measure_apart(users) for users in (10_000, 100_000, 1_000_000)}
    text = table(found, {name: real_epsilon(name) for name in found}, packed, scale)
    OUT.mkdir(exist_ok=True)
    (OUT / MARKDOWN).write_text(text, encoding="utf-8")
    say(f"{text}\npictures: {list(map(str, pictures))}")
    finish({"rounds": rounds, "found": _round_scores(found), "coding": packed, "scale": scale})


def _round_scores(found: dict[str, Found]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {m: {key: round(value, 4) for key, value in scores.items()} for m, scores in mechanisms.items()}
        for name, mechanisms in found.items()
    }


def _short(name: str) -> Corpus:
    """Return the users with at most M words: what the others send is cut anyway."""
    corpus = parts_of(name).train
    return corpus.select(corpus.lengths <= M)


if __name__ == "__main__":
    main()
