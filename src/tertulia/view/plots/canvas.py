"""Parts that plots share: axes, colours for colour-blind readers, bars, heat maps, tick labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tertulia._arrays import Array
from tertulia.view.plots.labels import check_matplotlib, foreign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito 2008, "Color Universal Design", without yellow (too pale) and black (the colour of text).
BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
GREY = "#999999"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
MARKS = "osD^vP"  # markers, for print in grey
SMALL = 8  # points
_TALLEST = 9.0  # inches
_ROW, _COLUMN = 0.15, 0.22  # inches for a small label in a column, and for a number in a row


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    check_matplotlib()
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)  # inches, so that long labels and legends are not cut
    return plt.subplots(figsize=size, layout=layout)[1]


def figure_of(axes: Axes) -> Figure:
    """Return the root figure of axes."""
    return cast("Figure", axes.get_figure(root=True))


def inches_of(axes: Axes) -> tuple[float, float]:
    """Return the width and height of axes in inches."""
    box, dpi = axes.get_window_extent(), figure_of(axes).dpi
    return box.width / dpi, box.height / dpi


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> Any:
    """Write a small text, which may come from other people, into a plot."""
    return axes.text(x, y, text, **{"fontsize": SMALL, "va": "center", **foreign(), **style})


def put_ticks(axis: Axis, labels: Sequence[str], **style: Any) -> None:
    """Label the positions 0, 1, 2, ...; if they do not fit, every second, third, ..."""
    wide, high = inches_of(axis.axes)
    inches, need = (high, _ROW) if axis is axis.axes.yaxis else (wide, _COLUMN)
    step = max(1, math.ceil(need * len(labels) / max(inches, need)))
    axis.set_ticks(range(0, len(labels), step), labels[::step], fontsize=SMALL, **foreign(), **style)


def percent_ticks(axis: Axis) -> None:
    """Label an axis of shares in percent, with as many decimals as its ticks need: 2.5%, 5%."""
    axis.set_major_formatter(lambda share, _: f"{round(100 * share, 6) + 0.0:g}%")


def whole_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def put_legend(axes: Axes, **style: Any) -> None:
    """Put a legend beside the axes."""
    where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    drawn = axes.legend(**{**where, "fontsize": SMALL, "frameon": False, **style})
    for text in drawn.get_texts():
        text.update({**foreign(), "fontsize": SMALL})


def open_frame(axes: Axes) -> None:
    """Hide the top and right spines."""
    axes.spines[["top", "right"]].set_visible(False)


def draw_bars(
    axes: Axes, labels: Sequence[str], values: Sequence[float] | Array, notes: Sequence[str], colours: Sequence[str]
) -> None:
    """Draw horizontal bars from the top down, each with a label to the left and a note at its end."""
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
    """Return a figure size in inches for a number of bars."""
    return wide, min(1.0 + 0.24 * max(rows, 3), _TALLEST)


def draw_heat(axes: Axes, matrix: Array, rows: Sequence[str], columns: Sequence[str], meaning: str) -> None:
    """Draw a heat map that starts at 0, with values in cells that are large enough; NaN cells stay empty."""
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
    """Return a figure size in inches for a heat map with topic labels at its left."""
    return min(4.2 + 0.42 * columns, 9.0), min(1.8 + 0.24 * max(rows, 8), _TALLEST)
