"""A panel's picture as SVG: lines over x, or bars; the same bytes for the same numbers and version of matplotlib."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.applications.cells import digest
from benchmarks.book.panels import Found, Panel

FOLDER = Path(__file__).parents[2] / "docs" / "figures" / "book"
MOST_BYTES = 80_000
MOST_LINES = 14  # of a legend that fits
COLOURS = (
    "#111827", "#c2410c", "#1d4ed8", "#0f766e", "#7e22ce", "#65a30d", "#be185d", "#a16207", "#0891b2", "#6b7280",
)  # fmt: skip
DASHES = ("-", "--", ":", "-.")


def mark(numbers: Mapping[str, Any]) -> str:
    """Return the mark by which a picture names the numbers that it shows."""
    return f"numbers {digest(numbers)}"


def mark_of(file: Path) -> str:
    """Read the mark of a picture."""
    found = re.search(r"numbers [0-9a-f]{16}", file.read_text(encoding="utf-8"))
    return found[0] if found else ""


def draw(panel: Panel, numbers: Mapping[str, Any]) -> Path:
    """Draw a panel, unless its picture shows these numbers already."""
    path = FOLDER / f"{panel.name}.svg"
    if path.exists() and mark_of(path) == mark(numbers):
        return path
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    style: Any = {
        "svg.fonttype": "none", "svg.hashsalt": panel.name, "font.size": 9, "axes.spines.top": False,
        "axes.spines.right": False, "axes.grid": True, "grid.color": "#e5e7eb", "axes.axisbelow": True,
        "path.simplify": True,
    }  # fmt: skip
    with mpl.rc_context(style):
        figure, axis = plt.subplots(figsize=(7.2, 3.6), constrained_layout=True)
        (_bars if panel.kind == "bars" else _lines)(axis, Found(numbers))
        axis.set(xlabel=panel.axes[0], ylabel=panel.axes[1])
        FOLDER.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": "benchmarks.book", "Description": mark(numbers)})
        plt.close(figure)
    size = path.stat().st_size
    if size > MOST_BYTES:
        path.unlink()
        raise ValueError(
            f"the picture of '{panel.name}' has {size} bytes of at most {MOST_BYTES}: measure fewer points"
        )
    return path


def _lines(axis: Any, found: Found) -> None:
    """Draw each line, over numbers if all names of points are, with the range over seeds as a band."""
    names = [x for line in found.lines for x in found.xs(line)]
    places = {x: float(x) if all(map(_is_number, names)) else float(i) for i, x in enumerate(dict.fromkeys(names))}
    for i, line in enumerate(found.lines):
        xs = [places[x] for x in found.xs(line)]
        look = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
        if len(xs) == 1:  # a control without x, such as the unigram
            axis.axhline(found(line), linewidth=1, label=line, **look)
            continue
        axis.plot(xs, found.curve(line), marker="." if len(xs) < 12 else "", linewidth=1.3, label=line, **look)
        ends = [[end(found.seeds(line, x)) for x in found.xs(line)] for end in (min, max)]
        axis.fill_between(xs, *ends, alpha=0.12, color=look["color"], linewidth=0)
    if not all(map(_is_number, names)):
        axis.set_xticks(list(places.values()), list(places))
    axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _bars(axis: Any, found: Found) -> None:
    """Draw a group of bars for each line, one for each point."""
    names = list(dict.fromkeys(x for line in found.lines for x in found.xs(line)))
    width = 0.8 / len(names)
    for j, x in enumerate(names):
        rows = [(i, line) for i, line in enumerate(found.lines) if x in found.lines[line]]
        values = [found(line, x) for _, line in rows]
        spread = [
            [abs(end(found.seeds(line, x)) - value) for (_, line), value in zip(rows, values, strict=True)]
            for end in (min, max)
        ]
        places = [i + (j - (len(names) - 1) / 2) * width for i, _ in rows]
        look = {"color": COLOURS[(j + 1) % len(COLOURS)], "label": x, "error_kw": {"linewidth": 0.8}}
        axis.barh(places, values, width, xerr=spread, **look)
    axis.set_yticks(range(len(found.lines)), list(found.lines))
    axis.invert_yaxis()
    if len(names) > 1:
        axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _is_number(name: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", name))
