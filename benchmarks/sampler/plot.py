"""The curves as pictures: perplexity against CPU seconds, a PNG to paste and an HTML page that needs nothing else."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

Curves = Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]  # panel -> trainer -> points

COLOURS = {
    "tertulia": "#c2410c",
    "tomotopy": "#1d4ed8",
    "topica warp": "#0f766e",
    "topica sparse": "#65a30d",
    "gensim": "#7e22ce",
    "sklearn": "#525252",
}
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "xtick.color": "#4b5563",
    "ytick.color": "#4b5563",
    "svg.fonttype": "none",
}


def draw(curves: Curves, ratios: Mapping[str, Mapping[str, float]], unigram: float, title: str) -> Any:
    """One panel per number of topics: every trainer's curve, how far behind each peer ends, and what all must beat."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(curves), figsize=(7.0 * len(curves), 5.8), squeeze=False)
        for axis, (panel, trainers) in zip(axes[0], curves.items(), strict=True):
            _panel(axis, trainers, ratios.get(panel, {}), unigram)
            axis.set_title(panel, pad=10)
        axes[0][0].set_ylabel("held-out perplexity (lower is better)")
        figure.suptitle(title, x=0.012, y=0.985, ha="left", fontsize=13)
        figure.tight_layout(rect=(0, 0, 1, 0.96), w_pad=3)
    return figure


def _panel(
    axis: Any, trainers: Mapping[str, Sequence[Mapping[str, float]]], ratios: Mapping[str, float], unigram: float
) -> None:
    for name, points in trainers.items():
        colour = COLOURS.get(name, "#111827")
        own = name == "tertulia"
        x, y = [p["cpu_s"] for p in points], [p["perplexity"] for p in points]
        axis.plot(x, y, color=colour, linewidth=2.6 if own else 1.8, zorder=3 if own else 2, label=_label(name, ratios))
        axis.scatter(x, y, color=colour, s=22 if own else 16, zorder=4, edgecolor="white", linewidth=0.6)
        if name in ratios:  # from where we reached the peer's end to where the peer did
            axis.plot([x[-1] / ratios[name], x[-1]], [y[-1]] * 2, color=colour, linewidth=1, linestyle=(0, (2, 3)))
    axis.axhline(unigram, color="#9ca3af", linewidth=1.4, linestyle="--", label="unigram: nothing learned", zorder=1)
    heights = [unigram, *(p["perplexity"] for points in trainers.values() for p in points)]
    margin = 0.06 * (max(heights) - min(heights))
    axis.set_ylim(min(heights) - margin, max(heights) + margin)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(MaxNLocator(6))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.grid(color="#e5e7eb", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.set_xlabel("CPU seconds of training, one thread")
    axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, handlelength=1.6)


def _label(name: str, ratios: Mapping[str, float]) -> str:
    return f"{name}  (we: {ratios[name]:.1f} times sooner)" if name in ratios else name


def save(figure: Any, result: Mapping[str, Any], stem: Path) -> list[Path]:
    """Write the picture as PNG, and as a page with the figures beneath it."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    figure.savefig(stem.with_suffix(".png"), dpi=150)
    plt.close(figure)
    svg = picture.getvalue()[picture.getvalue().index("<svg") :]
    stem.with_suffix(".html").write_text(_PAGE.format(svg=svg, rows=_rows(result)), encoding="utf-8")
    return [stem.with_suffix(".png"), stem.with_suffix(".html")]


def _rows(result: Mapping[str, Any]) -> str:
    cells = [(html.escape(key), html.escape(json.dumps(value))) for key, value in result.items() if key != "curves"]
    return "\n".join(f"<tr><th>{key}</th><td>{value}</td></tr>" for key, value in cells)


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>LDA trainers: perplexity against time</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #111827; max-width: 76rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ width: 100%; height: auto }}
table {{ border-collapse: collapse; font-size: 0.85rem }}
th {{ text-align: left; vertical-align: top; padding: 0.35rem 1rem 0.35rem 0; white-space: nowrap }}
td {{ padding: 0.35rem 0; font-family: ui-monospace, monospace; overflow-wrap: anywhere }}
tr {{ border-top: 1px solid #e5e7eb }}
</style>
{svg}
<table>
{rows}
</table>
</html>
"""
