"""Numbers of panels as text: the values of a point's seeds, and a panel's table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

from benchmarks.book.panels import Found, Panel

MOST_COLUMNS = 7


def table(panel: Panel, found: Found) -> list[str]:
    """Tabulate lines against points, or a selection of these; beside our numbers those that the paper prints."""
    several = [line for line in found.lines if len(found.xs(line)) > 1]
    single = list(dict.fromkeys(x for line in found.lines if line not in several for x in found.xs(line)))
    names = list(dict.fromkeys(x for line in several for x in found.xs(line)))
    if len(names) > MOST_COLUMNS:
        step = (len(names) - 1) / (MOST_COLUMNS - 1)
        names = list(dict.fromkeys(names[round(i * step)] for i in range(MOST_COLUMNS)))
    names += [x for x in single if x not in names]
    rows = [f"| {panel.axes[0] if several else ''} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    return rows + [
        f"| {line} | " + " | ".join(cell(panel, found, line, x) for x in names) + " |" for line in found.lines
    ]


def cell(panel: Panel, found: Found, line: str, x: str) -> str:
    """Format a point with the range over seeds, and what the paper prints."""
    if x not in found.lines[line]:
        return ""
    values = found.seeds(line, x)
    printed = panel.printed.get(line, {}).get(x)
    ours = quote_values(values, "range", decimals_of(values))
    return ours if printed is None else f"{ours}; paper {printed:g}"


def quote_values(values: list[float], style: str, decimals: int) -> str:
    """Format the values of a point's seeds."""
    return STYLES[style](values, decimals)


def decimals_of(values: list[float]) -> int:
    """Choose decimals by size: three significant digits, and no more than three decimals."""
    size = max(map(abs, values))
    return next((n for n, least in ((0, 100), (1, 10), (2, 1)) if size >= least), 3)


def _range(values: list[float], decimals: int) -> str:
    mean, low, high = (f"{value:.{decimals}f}" for value in (statistics.fmean(values), min(values), max(values)))
    return mean if low == high else f"{mean} ({low} to {high})"


def _sd(values: list[float], decimals: int) -> str:
    mean = f"{statistics.fmean(values):.{decimals}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{decimals}f}"


STYLES: Mapping[str, Callable[[list[float], int], str]] = {
    "mean": lambda values, decimals: f"{statistics.fmean(values):.{decimals}f}",
    "range": _range,
    "sd": _sd,
    "percent": lambda values, decimals: f"{100 * statistics.fmean(values):.{decimals}f} %",
}
