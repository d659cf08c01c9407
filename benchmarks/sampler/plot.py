"""The curves as pictures: scores against CPU seconds, a PNG to paste and an HTML page that needs nothing else."""

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

Curves = Mapping[str, Sequence[Sequence[Mapping[str, float]]]]  # trainer -> a curve per seed

COLOURS = {
    "tertulia": "#c2410c",
    "tomotopy": "#1d4ed8",
    "topica": "#0f766e",
    "gensim": "#7e22ce",
    "sklearn": "#525252",
}
PANELS = {
    "ppl": "held-out perplexity (lower is better)",
    "npmi": "NPMI of ten words (higher is better)",
    "diversity": "diversity of 25 words (higher is better)",
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


def draw(curves: Curves, title: str) -> Any:
    """Draw three panels, a line per trainer and seed; a dashed line marks a peer's end, a star where ours stops."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(PANELS), figsize=(6.0 * len(PANELS), 5.4))
        for axis, (score, label) in zip(axes, PANELS.items(), strict=True):
            for name, several in curves.items():
                _lines(axis, name, several, score)
            _dress(axis, score)
            axis.set_title(label, pad=10, fontsize=12)
        handles = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles.keys(), frameon=False, loc="lower center", ncols=len(handles))
        figure.suptitle(title, x=0.012, y=0.985, ha="left", fontsize=13)
        figure.tight_layout(rect=(0, 0.06, 1, 0.96), w_pad=2.5)
    return figure


def _lines(axis: Any, name: str, several: Sequence[Sequence[Mapping[str, float]]], score: str) -> None:
    colour, own = COLOURS.get(name, "#111827"), name == "tertulia"
    for curve in several:
        points = [point for point in curve if not point.get("auto")]
        x, y = [p["cpu_s"] for p in points], [p[score] for p in points]
        axis.plot(x, y, color=colour, linewidth=2.6 if own else 1.8, zorder=3 if own else 2, label=name)
        axis.scatter(x, y, color=colour, s=22 if own else 16, zorder=4, edgecolor="white", linewidth=0.6)
        if not own:
            axis.axhline(y[-1], color=colour, linewidth=1, linestyle=(0, (2, 3)), zorder=1)
        for point in (point for point in curve if point.get("auto")):
            star = {"marker": "*", "s": 170, "edgecolor": "white", "linewidth": 0.8, "zorder": 5}
            axis.scatter(point["cpu_s"], point[score], color=colour, label="tertulia, auto", **star)


def _dress(axis: Any, score: str) -> None:
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(MaxNLocator(6))
    if score == "ppl":
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.grid(color="#e5e7eb", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.set_xlabel("CPU seconds of training, one thread")


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
<html lang="en"><meta charset="utf-8"><title>LDA trainers: scores against time</title>
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
