"""FedLDA's figure 5 as we measure it, and everything as Markdown: perplexities, and the real epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.sampler.plot import STYLE

MARKDOWN = "fedlda.md"
LOOKS = {  # label, colour, dashes; dotted: the paper's bookkeeping
    "none": ("no privacy", "#111827", "-"),
    "rrp": ("RRP (claims more than it keeps)", "#c2410c", "-"),
    "krr": ("kRR", "#1d4ed8", "-"),
    "tkrr": ("t-kRR", "#0f766e", "-"),
    "sound": ("sound: one report per token", "#65a30d", "-"),
    "sound_user": ("sound, by the user's total", "#4d7c0f", "--"),
    "none_paper": ("no privacy, counts drift", "#111827", ":"),
    "rrp_paper": ("RRP, counts drift", "#c2410c", ":"),
    "krr_paper": ("kRR, counts drift", "#1d4ed8", ":"),
    "tkrr_paper": ("t-kRR, counts drift", "#0f766e", ":"),
    "rrp_anew": ("RRP, all sent, words drawn again", "#c2410c", "--"),
    "hm_paper": ("HM (mostly above the axis)", "#7e22ce", ":"),
}
SAMPLERS = {"gibbs": "Gibbs sampling", "mh": "Metropolis-Hastings"}
HIGHEST = 2.2  # times the unigram: what lies above, as HM does at first, has learned nothing
AXES = {
    "epsilon": "epsilon",
    "user_epsilon": "epsilon of a user",
    "topics": "topics K",
    "delta": "delta",
    "sample_ratio": "sample ratio l / M",
}


def draw(panels: Mapping[str, Mapping[str, Any]], unigrams: Mapping[str, float], out: Path) -> list[Path]:
    """Draw a picture per data set: convergence with both samplers, then one panel per setting."""
    paths = []
    for name, found in panels.items():
        lines = {SAMPLERS[sampler]: curves for sampler, curves in found["convergence"].items()}
        settings = {key: value for key, value in found.items() if key != "convergence"}
        n = len(lines) + len(settings)
        with plt.rc_context(STYLE):
            figure, axes = plt.subplots(-(-n // 3), 3, figsize=(15, 4.4 * -(-n // 3)), squeeze=False)
            for axis in axes.flat[n:]:
                axis.axis("off")
            for axis, (title, curves) in zip(axes.flat, lines.items(), strict=False):
                _panel(axis, {m: dict(enumerate(ys, 1)) for m, ys in curves.items()}, title, "round", unigrams[name])
            for axis, (setting, curves) in zip(axes.flat[len(lines) :], settings.items(), strict=False):
                _panel(axis, curves, f"varying {AXES[setting]}", AXES[setting], unigrams[name], marker="o")
            handles = {
                label: h for axis in axes.flat for h, label in zip(*axis.get_legend_handles_labels(), strict=True)
            }
            figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=4, frameon=False)
            figure.suptitle(f"FedLDA on {name.capitalize()}: held-out perplexity (lower is better)", x=0.012, ha="left")
            figure.tight_layout(rect=(0, 0.18 if n <= 3 else 0.09, 1, 0.97))
        paths.append(out / f"fedlda_{name}.png")
        figure.savefig(paths[-1], dpi=130)
        plt.close(figure)
    return paths


def _panel(
    axis: Any, curves: Mapping[str, Mapping[float, float]], title: str, xlabel: str, unigram: float, **line: Any
) -> None:
    for mechanism, points in curves.items():
        label, colour, dashes = LOOKS[mechanism]
        axis.plot(list(points), list(points.values()), color=colour, linestyle=dashes, label=label, **line)
    axis.axhline(unigram, color="#9ca3af", linestyle="--", linewidth=1.2, label="unigram: nothing learned")
    axis.set_title(title)
    axis.set_xlabel(xlabel)
    axis.set_ylim(0.55 * unigram, HIGHEST * unigram)
    axis.grid(color="#e5e7eb", linewidth=0.8)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def table(
    found: Mapping[str, Mapping[str, Mapping[str, float]]],
    real_epsilons: Mapping[str, float],
    packed: Mapping[str, Mapping[str, Any]],
    scale: Mapping[int, Mapping[str, float]],
) -> str:
    """Return everything that was measured, as Markdown."""
    lines = []
    for name, mechanisms in found.items():
        lines += _head(name, "perplexity", "own documents", "seeds", "real epsilon")
        lines += [
            _row(
                mechanism,
                *(_spread(scores, key) for key in ("test", "own")),
                scores["seeds"],
                _real_epsilon(mechanism, real_epsilons[name]),
            )
            for mechanism, scores in mechanisms.items()
        ]
        lines.append("")
    lines += _head("users", "seconds per round", "CPU seconds", "peak MB")
    lines += [
        _row(f"{n:,}", f"{s['seconds']:.1f}", f"{s['cpu_seconds']:.1f}", f"{s['rss_mb']:.0f}") for n, s in scale.items()
    ]
    coded = ("bytes_per_user_round", "times_below_dense_tuples", "over_entropy")
    lines += [
        "",
        *_head("tuples of", "bytes per user and round", "times below dense tuples", "over the stream's entropy"),
    ]
    lines += [_row(name, *(p[key] for key in coded)) for name, p in packed.items()]
    return "\n".join(lines) + "\n"


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|---" * len(cells) + "|"]


def _spread(scores: Mapping[str, float], key: str) -> str:
    """Return the mean and the standard deviation over seeds."""
    if key not in scores:
        return "–"
    deviation = f" ± {scores[f'{key} sd']:.0f}" if f"{key} sd" in scores else ""
    return f"{scores[key]:.0f}{deviation}"


def _real_epsilon(mechanism: str, sound: float) -> str:
    """Return the real epsilon of a user."""
    if mechanism == "unigram" or mechanism in ("pooled", "pooled_fixed", "random"):
        return "a control"
    if mechanism.startswith("sound"):
        return f"{sound:.0f} at delta 1e-6, once"
    return "7.5 in each round" if mechanism == "hm_paper" else "infinite"
