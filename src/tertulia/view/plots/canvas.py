"""What plots share: axes, colours that colour-blind people can tell apart, bars, heat maps, labels that find room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tertulia._arrays import Array
from tertulia.view.plots.letters import check_matplotlib, foreign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito 2008, "Color Universal Design"; their yellow and black are left out: too pale, and the colour of text.
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
GREY = "#999999"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
MARKS = "osD^vP"  # beside colours, for print in grey
SMALL = 8  # points
_TALLEST = 9.0  # inches
_ROW, _COLUMN = 0.15, 0.22  # inches that a small label needs above another, and a number beside another


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    check_matplotlib()
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)  # inches: long labels and legends stay off the edge
    return plt.subplots(figsize=size, layout=layout)[1]


def figure_of(axes: Axes) -> Figure:
    """The whole figure that axes are in."""
    return cast("Figure", axes.get_figure(root=True))


def inches_of(axes: Axes) -> tuple[float, float]:
    """How wide and high axes are."""
    box, dpi = axes.get_window_extent(), figure_of(axes).dpi
    return box.width / dpi, box.height / dpi


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> Any:
    """Put a small text that may be another's into a plot."""
    return axes.text(x, y, text, **{"fontsize": SMALL, "va": "center", **foreign(), **style})


def put_ticks(axis: Axis, labels: Sequence[str], **style: Any) -> None:
    """Label the places 0, 1, 2, ...; where there is no room for all, every second, third, ..."""
    wide, high = inches_of(axis.axes)
    inches, need = (high, _ROW) if axis is axis.axes.yaxis else (wide, _COLUMN)
    step = max(1, math.ceil(need * len(labels) / max(inches, need)))
    axis.set_ticks(range(0, len(labels), step), labels[::step], fontsize=SMALL, **foreign(), **style)


def put_legend(axes: Axes, **style: Any) -> None:
    """A legend beside the axes."""
    where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    drawn = axes.legend(**{**where, "fontsize": SMALL, "frameon": False, **style})
    for text in drawn.get_texts():
        text.update({**foreign(), "fontsize": SMALL})


def open_frame(axes: Axes) -> None:
    """Only the two lines that carry numbers."""
    axes.spines[["top", "right"]].set_visible(False)


def draw_bars(
    axes: Axes, labels: Sequence[str], values: Sequence[float] | Array, notes: Sequence[str], colours: Sequence[str]
) -> None:
    """Lying bars from the top down, each with its label to the left and a note at its end."""
    axes.barh(range(len(labels)), values, color=list(colours), height=0.75)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    put_ticks(axes.yaxis, labels)
    axes.tick_params(axis="y", length=0)
    if len(labels) * _ROW <= inches_of(axes)[1]:
        for row, (value, note) in enumerate(zip(values, notes, strict=True)):
            beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "fontsize": SMALL}
            axes.annotate(note, (value, row), **beside)  # type: ignore[arg-type]
    open_frame(axes)


def bar_size(rows: int, wide: float = 7.0) -> tuple[float, float]:
    """Inches for so many bars."""
    return wide, min(1.0 + 0.24 * max(rows, 3), _TALLEST)


def draw_heat(axes: Axes, matrix: Array, rows: Sequence[str], columns: Sequence[str], meaning: str) -> None:
    """A heat map from 0 on; where cells are large enough their values stand in them, NaN is left empty."""
    known = matrix[~np.isnan(matrix)]
    most = (float(known.max()) if len(known) else 0.0) or 1.0
    image = axes.imshow(matrix, cmap="viridis", vmin=0.0, vmax=most, aspect="auto")
    axes.set_facecolor("0.92")
    if matrix.shape[0] <= 25 and matrix.shape[1] <= 12:
        for (i, j), value in np.ndenumerate(matrix):
            if not np.isnan(value):
                ink = "black" if value > 0.6 * most else "white"
                write(axes, j, i, f"{value:.2f}", ha="center", color=ink)
    put_ticks(axes.yaxis, rows)
    long = max(map(len, columns)) > 3
    put_ticks(axes.xaxis, columns, **({"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if long else {}))
    figure_of(axes).colorbar(image, ax=axes, label=meaning, aspect=40)


def heat_size(rows: int, columns: int) -> tuple[float, float]:
    """Inches for a heat map with labels of topics at its left."""
    return min(4.2 + 0.42 * columns, 9.0), min(1.8 + 0.24 * max(rows, 8), _TALLEST)
