"""FTM's figures and the table "paper / ours", from the benchmark's result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

Result = Mapping[str, Any]
GREY, BLUE, ORANGE, GREEN, RED = "#9ca3af", "#2563eb", "#ea580c", "#059669", "#dc2626"
STYLE = {"paper": (ORANGE, "--"), "paper, tau 0.8": (RED, "--"), "sound": (BLUE, "-")}


def draw(result: Result, folder: Path) -> list[Path]:
    """Draw what the result has figures for."""
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False})
    figures = {
        "likelihood": ("ll_single", _likelihood),
        "rounds": ("curves", _rounds),
        "noise": ("ppl_krr", _noise),
    }
    paths = []
    for name, (key, paint) in figures.items():
        if key in result:
            figure = paint(result)
            figure.savefig(folder / f"{name}.png", dpi=150, bbox_inches="tight")
            plt.close(figure)
            paths.append(folder / f"{name}.png")
    return paths


def _likelihood(result: Result) -> Any:
    """Draw each party alone, together, pooled (fig. 4/5); together against epsilon (fig. 5/6)."""
    figure, (bars, lines) = plt.subplots(1, 2, figsize=(14, 4.6))
    clear = result["ll_federated_clear"]
    shown = {
        **{f"{party} alone": (value, GREY) for party, value in result["ll_single"].items()},
        "federated,\nLDA": (clear["lda"], BLUE),
        "federated,\nSentence": (clear["sentence"], GREEN),
        "side by\nside": (result["ll_concatenation"], GREY),
        **{f"pooled,\n{K} topics": (value, "#1f2937") for K, value in result["ll_pooled"].items()},
    }
    unigram = result["ll_unigram"]
    for x, (name, (value, colour)) in enumerate(shown.items()):
        bars.bar(x, value - unigram, color=colour, width=0.7)
        bars.annotate(f"{value:.2f}", (x, value - unigram), ha="center", va="bottom" if value > unigram else "top")
        shown[name] = (value, colour)
    bars.set_xticks(range(len(shown)), list(shown), fontsize=7)
    bars.axhline(0, color="black", linewidth=0.8)
    bars.set_ylabel(f"log likelihood of a token, above unigram ({unigram:.2f})")
    bars.set_title("Without noise")
    epsilons = sorted(int(e) for e in result["ll_federated"])
    for mode, (colour, line) in STYLE.items():
        for model, marker in (("lda", "o"), ("sentence", "s")):
            if model not in result["ll_federated"][str(epsilons[0])][mode]:
                continue
            y = [result["ll_federated"][str(e)][mode][model] for e in epsilons]
            label = f"{mode}, {'LDA' if model == 'lda' else 'SentenceLDA'}"
            lines.plot(epsilons, y, line, color=colour, marker=marker, label=label, alpha=1 if model == "lda" else 0.6)
    for name, value, colour in (
        ("without noise", clear["lda"], GREEN), ("side by side", result["ll_concatenation"], "#1f2937"),
        ("best party alone", result["ll_single_best"], GREY),
        ("unigram", unigram, RED),
    ):  # fmt: skip
        lines.axhline(value, color=colour, linewidth=1.2, linestyle=":", label=name)
    lines.set_xticks(epsilons)
    lines.set_xlabel("epsilon of a token, as each mode counts it")
    lines.set_ylabel("log likelihood of a token")
    lines.set_title("Federated, under noise")
    lines.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _rounds(result: Result) -> Any:
    """Draw likelihood against rounds and bytes (fig. 6/7)."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 4.4), sharey=True)
    for axis, key, label in zip(
        panels, ("round", "bytes"), ("communication rounds", "bytes, all parties"), strict=True
    ):
        for (name, points), colour in zip(result["curves"].items(), (BLUE, GREEN, ORANGE), strict=True):
            axis.plot([p[key] for p in points], [p["ll"] for p in points], marker=".", color=colour, label=name)
        axis.axhline(result["rounds_unigram"], color=RED, linewidth=1.2, linestyle=":", label="unigram")
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.grid(color="#e5e7eb", linewidth=0.8)
    panels[0].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[1].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:g} MB"))
    panels[0].set_ylabel("log likelihood of a token")
    panels[0].legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1.0, 0.05))
    return figure


def _noise(result: Result) -> Any:
    """Draw perplexity on BBC news under every channel."""
    figure, axis = plt.subplots(figsize=(9, 4.4))
    shown = [("pooled,\nno noise", result["ppl_nonprivate"], "#1f2937")]
    channels = {
        "ppl_krr": ("k-RR", BLUE),
        "ppl_laplace_aware": ("Laplace,\naware", GREEN),
        "ppl_literal": ("literal", ORANGE),
    }
    for key, (name, colour) in channels.items():
        shown += [(f"{name} {epsilon}", value, colour) for epsilon, value in result[key].items()]
    for x, (_, value, colour) in enumerate(shown):
        axis.bar(x, value, color=colour, width=0.7)
        axis.annotate(f"{value:.0f}", (x, value), ha="center", va="bottom")
    axis.set_xticks(range(len(shown)), [name for name, *_ in shown], fontsize=9)
    axis.axhline(result["ppl_unigram"], color=RED, linestyle=":", label=f"unigram {result['ppl_unigram']:.0f}")
    for of, single in (
        ("", result["ppl_single_best"]),
        (", by subject", result["news_by_subject"]["ppl_single_best"]),
    ):
        axis.axhline(
            single, color=GREY, linestyle="--" if of else ":", label=f"best party alone{of}, no noise {single:.0f}"
        )
    axis.set_ylabel("perplexity, lower is better")
    axis.set_title("BBC news, three parties counting together")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, fontsize=9)
    return figure


def table(result: Result, folder: Path) -> list[Path]:
    """Write the table "paper / ours" of what the result has figures for."""
    rows = [*_paper_rows(result), *_noise_rows(result)]
    lines = [
        "| what | paper | ours |",
        "|---|---|---|",
        *(f"| {what} | {paper} | {ours} |" for what, paper, ours in rows),
    ]
    path = folder / "table.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]


def _paper_rows(result: Result) -> list[tuple[str, str, str]]:
    rows = []
    if "ll_single" in result:
        sound = {e: modes["sound"]["lda"] for e, modes in result["ll_federated"].items()}
        literal = {e: modes["paper"]["lda"] for e, modes in result["ll_federated"].items()}
        high = {e: modes["paper, tau 0.8"]["lda"] for e, modes in result["ll_federated"].items()}
        best, clear = result["ll_single_best"], result["ll_federated_clear"]["lda"]
        rows += [
            (
                "federated against the best single party, log likelihood",
                "better (fig. 4/5)",
                f"{clear:.3f} / {best:.3f}",
            ),
            ("the parties' models side by side", "-", f"{result['ll_concatenation']:.3f}"),
            ("pooled, without noise, by topics", "near", _spell(result["ll_pooled"])),
            ("likelihood grows with epsilon 8..11, mode paper, tau 0.2", "yes (fig. 5/6)", _spell(literal)),
            ("the same, tau 0.8", "yes", _spell(high)),
            ("the same, mode sound", "-", _spell(sound)),
        ]
    if "curves" in result:
        rows += [
            ("rounds of three parties to 95 % of the way", "under 5 (fig. 6/7)", str(result["rounds_to_95"])),
            ("rounds of four parties", "about 15", str(result["rounds_to_95_four_parties"])),
            ("rounds of conventional LDA", "300 and more", str(result["conventional_rounds_to_95"])),
            (
                "sweeps and bytes to get there: FTM; conventional",
                "-",
                f"{result['sweeps_to_95']}, {_megabytes(result['bytes_to_95'])}; "
                f"{result['conventional_rounds_to_95']}, {_megabytes(result['conventional_bytes_to_95'])}",
            ),
        ]
    return rows


def _noise_rows(result: Result) -> list[tuple[str, str, str]]:
    rows = []
    if "ppl_krr" in result:
        base = result["ppl_nonprivate"]
        for key, name, paper in (
            ("ppl_literal", "perplexity over that without noise, literal", "below 1 at 11"),
            ("ppl_laplace_aware", "the same reports, noise-aware; epsilon by substitution", "-"),
            ("ppl_krr", "randomised response", "-"),
        ):
            rows.append((name, paper, _spell({e: value / base for e, value in result[key].items()})))
    for split, found in result.get("consensus", {}).items():
        ratio = found["ppl"] / found["ppl_pooled"]
        rows.append((f"consensus, {split}: perplexity over pooled", "-", f"{ratio:.3f} after {found['rounds']} rounds"))
    return rows


def _megabytes(sent: float | None) -> str:
    return "never" if sent is None else f"{sent / 1e6:.0f} MB"


def _spell(values: Mapping[str, float]) -> str:
    return ", ".join(f"{epsilon}: {value:.3f}" for epsilon, value in values.items())
