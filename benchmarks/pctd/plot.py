"""The figures of the PC-TD benchmark as one picture, and as a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.sampler.plot import STYLE

Coherence = Mapping[str, Mapping[str, Mapping[str, float]]]  # K -> method -> measure
_METHODS = {"pctd": "PC-TD", "pctd_noise": "PC-TD, sigma 0.25", "lda": "LDA"}
_COLOURS = {"pctd": "#c2410c", "pctd_noise": "#7e22ce", "lda": "#1d4ed8"}
_GREY = "#9ca3af"


def draw(
    name: str,
    curves: Mapping[float, Sequence[float]],
    participants: Mapping[str, float],
    coherence: Coherence,
    taus: Mapping[float, Mapping[str, float]],
    unigram: float,
    path: Path,
) -> None:
    """Draw convergence, participants, two coherences and the effect of tau, each a panel."""
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(2, 3, figsize=(16, 9))
        (first, second, third), (fourth, fifth, sixth) = panels
        _convergence(first, curves, unigram)
        _participants(second, participants, unigram)
        _coherence(third, coherence, "umass", "UMass (higher is better)")
        _coherence(fourth, coherence, "npmi", "NPMI (higher is better)")
        for axis, key, label in ((fifth, "npmi", "NPMI"), (sixth, "perplexity", "held-out perplexity")):
            axis.plot(list(taus), [row[key] for row in taus.values()], "o-", color=_COLOURS["pctd"])
            axis.set(title=f"Effect of tau: {label}", xlabel="tau", ylabel=label)
        for axis in panels.flat:
            axis.grid(color="#e5e7eb", linewidth=0.8)
            axis.set_axisbelow(True)
        figure.suptitle(f"PC-TD on {name}, three participants", x=0.012, ha="left", fontsize=13)
        figure.tight_layout(rect=(0, 0, 1, 0.97), w_pad=3, h_pad=2)
        figure.savefig(path, dpi=120)
        plt.close(figure)


def _convergence(axis: Any, curves: Mapping[float, Sequence[float]], unigram: float) -> None:
    shades = plt.get_cmap("plasma")
    for i, (sigma, values) in enumerate(curves.items()):
        axis.plot(range(1, len(values) + 1), values, color=shades(0.85 * i / len(curves)), label=f"sigma {sigma:g}")
    axis.axhline(unigram, color=_GREY, linestyle="--", label="unigram: nothing learned")
    axis.set(title="Convergence (figure 2)", xlabel="iteration", ylabel="held-out perplexity")
    axis.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)


def _participants(axis: Any, participants: Mapping[str, float], unigram: float) -> None:
    colours = [_COLOURS["pctd"] if name == "federated" else _GREY for name in participants]
    bars = axis.bar(list(participants), list(participants.values()), color=colours)
    axis.bar_label(bars, fmt="{:.0f}", label_type="center", color="white")
    axis.axhline(unigram, color=_GREY, linestyle="--")
    axis.set(title="Each participant alone (figure 3)", ylabel="held-out perplexity, no noise")


def _coherence(axis: Any, coherence: Coherence, measure: str, label: str) -> None:
    for method, title in _METHODS.items():
        values = [cells[method][measure] for cells in coherence.values()]
        axis.plot([int(K) for K in coherence], values, "o-", color=_COLOURS[method], label=title)
    axis.set(title=f"Coherence (figure 4): {measure}", xlabel="topics", ylabel=label)
    axis.legend(frameon=False, fontsize=9)


def table(
    name: str,
    result: Mapping[str, Any],
    singles: Mapping[str, float],
    taus: Mapping[float, Mapping[str, float]],
    unigram: float,
) -> str:
    """Say the same in Markdown, with a verdict on each expectation."""
    tokens = next(iter(result["real_eps"].values()))["document_tokens"]
    lines = [
        f"## PC-TD on {name}", "",
        f"| sigma | perplexity | worth | claimed | moments | real: word | word replaced | document of {tokens} |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for sigma, value in result["ppl"].items():
        worth = "learns" if value < 0.95 * unigram else "no better than the unigram" if value < unigram else "worse"
        eps = result["real_eps"].get(sigma)
        keys = ("claimed", "moments", "token", "replaced", "document")
        costs = [f"{eps[key]:,.0f}" for key in keys] if eps else ["–", "–", "infinite", "infinite", "infinite"]
        lines.append(f"| {sigma} | {value:.0f} | {worth} | " + " | ".join(costs) + " |")
    lines += ["", f"Unigram {unigram:.0f}. Alone: " + ", ".join(f"{p} {v:.0f}" for p, v in singles.items())
              + f"; federated {result['ppl_federated']:.0f}.", "",
              "| topics | " + " | ".join(f"{title}: UMass, NPMI" for title in _METHODS.values()) + " |",
              "|---|---|---|---|"]  # fmt: skip
    for K, cells in result["coherence"].items():
        scores = [f"{cells[m]['umass']:.1f}, {cells[m]['npmi']:.3f}" for m in _METHODS]
        lines.append(f"| {K} | " + " | ".join(scores) + " |")
    lines += ["", "| tau | perplexity | UMass | NPMI |", "|---|---|---|---|"]
    for tau, row in taus.items():
        lines.append(f"| {tau:g} | {row['perplexity']:.0f} | {row['umass']:.1f} | {row['npmi']:.3f} |")
    return "\n".join([*lines, "", *_verdicts(result, unigram), ""])


def _verdicts(result: Mapping[str, Any], unigram: float) -> list[str]:
    noisy = result["ppl"]["0.25"]
    cells = result["coherence"].values()
    ahead = sum(cell["pctd_noise"]["umass"] > cell["lda"]["umass"] for cell in cells)
    return [
        _verdict("federated below every participant alone", result["ppl_federated"] < result["ppl_single_best"]),
        _verdict("word relations raise NPMI at tau 0.3", result["consistency_gain_npmi"] > 0),
        _verdict("sigma 0.25 on all words learns something (below the unigram)", noisy < unigram),
        f"- with sigma 0.25, UMass is above LDA's for {ahead} of {len(result['coherence'])} numbers of topics",
    ]


def _verdict(what: str, holds: bool) -> str:
    return f"- {what}: {'yes' if holds else '**no**'}"
