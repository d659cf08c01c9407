"""A panel's picture as SVG: lines over x, or bars; the same bytes for the same numbers and version of matplotlib."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.applications.cells import digest
from benchmarks.book.panels import Found, Panel

FOLDER = Path(__file__).parents[2] / "docs" / "figures" / "book"
MOST_BYTES = 80_000
UNEQUAL = 3.0  # times: values that differ by more do not share an axis
DRAWING = 5  # a new number draws all pictures again
HIGHEST, EXTREME = 3.0, 20.0  # times the median: where points are extreme, as of first rounds, the axis ends lower
CROWDED = 45  # letters that fit below an axis side by side
COLOURS = (
    "#111827", "#c2410c", "#1d4ed8", "#0f766e", "#7e22ce", "#65a30d", "#be185d", "#a16207", "#0891b2", "#6b7280",
)  # fmt: skip
DASHES = ("-", "--", ":", "-.")


def mark(panel: Panel, numbers: Mapping[str, Any]) -> str:
    """Return the mark by which a picture names what it shows: the numbers, the axes, the way of drawing."""
    return f"numbers {digest({'numbers': numbers, 'axes': panel.axes, 'logs': panel.logs, 'drawing': DRAWING})}"


def mark_of(file: Path) -> str:
    """Read the mark of a picture."""
    found = re.search(r"numbers [0-9a-f]{16}", file.read_text(encoding="utf-8")) if file.exists() else None
    return found[0] if found else ""


def draw(panel: Panel, numbers: Mapping[str, Any]) -> Path:
    """Draw a panel, unless its picture shows these numbers already."""
    path = FOLDER / f"{panel.name}.svg"
    if mark_of(path) == mark(panel, numbers):
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
        found = Found(numbers)
        scales = _scales(found) if panel.kind == "bars" else [[]]
        figure, axes = plt.subplots(
            1, len(scales), figsize=(7.2, 3.6), constrained_layout=True, sharey=True, squeeze=False
        )
        for axis, names in zip(axes[0], scales, strict=True):
            for which in panel.logs:
                getattr(axis, f"set_{which}scale")("log")
            if panel.kind == "bars":
                _dots(axis, found, names)
            else:
                _lines(axis, found)
            axis.set(xlabel=panel.axes[0] if len(scales) == 1 else names[0] if len(names) == 1 else "")
        axes[0, 0].set(ylabel=panel.axes[1])
        if panel.kind == "bars":
            axes[0, 0].invert_yaxis()
        FOLDER.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": "benchmarks.book", "Description": mark(panel, numbers)})
        plt.close(figure)
    size = path.stat().st_size
    if size > MOST_BYTES:
        path.unlink()
        raise ValueError(
            f"the picture of '{panel.name}' has {size} bytes of at most {MOST_BYTES}: measure fewer points"
        )
    return path


def _lines(axis: Any, found: Found) -> None:
    """Draw each line, over numbers if all names of points are, with the range over seeds as a band.

    A line with one point is a horizontal if that is called `control`; others with one point are in the table alone.
    """
    several = [line for line in found.lines if len(found.xs(line)) > 1]
    names = list(dict.fromkeys(x for line in several for x in found.xs(line)))
    numeric = all(map(_is_number, names))
    places = {x: float(x) if numeric else float(i) for i, x in enumerate(names)}
    for i, line in enumerate(found.lines):
        look = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}
        if found.xs(line) == ["control"]:
            axis.axhline(found(line), linewidth=1, label=line, **look)
        elif line not in several and found.xs(line)[0] in places:
            axis.plot([places[found.xs(line)[0]]], [found(line)], "x", color=look["color"], label=line)
        elif line in several:
            xs = [places[x] for x in found.xs(line)]
            axis.plot(xs, found.curve(line), marker="." if len(xs) < 12 else "", linewidth=1.3, label=line, **look)
            ends = [[end(found.seeds(line, x)) for x in found.xs(line)] for end in (min, max)]
            axis.fill_between(xs, *ends, alpha=0.12, color=look["color"], linewidth=0)
    if not numeric:
        crowded = sum(map(len, names)) > CROWDED
        axis.set_xticks(list(places.values()), names, rotation=30 * crowded, ha="right" if crowded else "center")
    values = sorted(value for line in several for value in found.curve(line))
    if values[0] > 0 and values[-1] > EXTREME * values[len(values) // 2] and axis.get_yscale() == "linear":
        axis.set_ylim(0.9 * values[0], HIGHEST * values[len(values) // 2])
    axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _scales(found: Found) -> list[list[str]]:
    """Group the names of points by the size of their values: those of one group share an axis."""
    groups: list[tuple[float, list[str]]] = []
    for x in dict.fromkeys(x for line in found.lines for x in found.xs(line)):
        size = statistics.median(abs(found(line, x)) for line in found.lines if x in found.lines[line])
        near = next((names for known, names in groups if max(known, size) <= UNEQUAL * min(known, size)), None)
        if near is None:
            groups.append((size, [x]))
        else:
            near.append(x)
    return [names for _, names in groups]


def _dots(axis: Any, found: Found, names: list[str]) -> None:
    """Draw a row for each line, a dot for each of these points, and the range over seeds."""
    for j, x in enumerate(names):
        rows = [(i, line) for i, line in enumerate(found.lines) if x in found.lines[line]]
        values = [found(line, x) for _, line in rows]
        spread = [
            [abs(end(found.seeds(line, x)) - value) for (_, line), value in zip(rows, values, strict=True)]
            for end in (min, max)
        ]
        places = [i + 0.5 * (j - (len(names) - 1) / 2) / len(names) for i, _ in rows]
        axis.errorbar(
            values, places, xerr=spread, fmt="o", markersize=4, color=COLOURS[(j + 1) % len(COLOURS)], label=x
        )
    axis.set_yticks(range(len(found.lines)), list(found.lines))
    if len(names) > 1:
        axis.legend(frameon=False, fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _is_number(name: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?", name))
