"""Plot of three measures over the number of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tertulia.applications.topic_numbers import TopicNumbers
from tertulia.view.plots.canvas import BLUE, GREEN, GREY, ORANGE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINES = {"coherence": (GREEN, "^"), "stability": (ORANGE, "s")}


def draw_topic_numbers(found: TopicNumbers, *, ax: Axes | None = None) -> Axes:
    """Draw perplexity against the left axis, coherence and stability against the right one, and mark the best."""
    axes = new_axes(ax, (6.4, 4.0))
    table = found.table
    numbers = table["topics"].to_list()
    axes.axvline(found.best, color=GREY, linestyle="--", label=f"best: {found.best}")
    if not table["perplexity"].null_count():
        axes.plot(numbers, table["perplexity"].to_list(), color=BLUE, marker="o", label="perplexity")
    other = axes.twinx()
    for name, (colour, mark) in _LINES.items():
        if not table[name].null_count():
            other.plot(numbers, table[name].to_list(), color=colour, marker=mark, label=name)
    axes.set_xscale("log")
    axes.set_xticks(numbers, [str(number) for number in numbers])
    axes.minorticks_off()
    axes.set_xlabel("topics")
    axes.set_ylabel("held-out perplexity (lower is better)")
    other.set_ylabel("coherence, stability (higher is better)")
    lines = [line for one in (axes, other) for line in one.get_lines()]
    other.legend(lines, [str(line.get_label()) for line in lines], frameon=False, fontsize=8)
    return axes
