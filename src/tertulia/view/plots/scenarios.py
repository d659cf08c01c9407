"""Comparison of alone, federated and pooled models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertulia.errors import InputError
from tertulia.view.plots.canvas import BLUE, GREEN, GREY, ORANGE, bar_size, draw_bars, new_axes
from tertulia.view.plots.labels import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"federated": BLUE, "pooled": GREEN, "alone": ORANGE}
_LOWER = {"perplexity"}


def draw_scenarios(
    results: Sequence[Mapping[str, Any]] | Mapping[str, Any] | str | Path,
    *,
    measure: str = "perplexity",
    ax: Axes | None = None,
) -> Axes:
    """Draw what `tertulia scenarios` found: its rows, its JSON, or a file with that.

    Federated is blue, pooled (all documents in one place) green, alone orange, controls are grey.
    """
    rows = _rows(results)
    if missing := [row for row in rows if not isinstance(row.get(measure), int | float) or "scenario" not in row]:
        raise InputError(
            f"{dict(missing[0])} is no row of scenarios with '{measure}': give what it printed with --json"
        )
    labels = [_label(row) for row in rows]
    values = [float(row[measure]) for row in rows]
    axes = new_axes(ax, bar_size(len(rows)))
    colours = [_COLOURS.get(str(row["scenario"]).split(",")[0], GREY) for row in rows]
    draw_bars(axes, labels, values, [f"{value:.4g}" for value in values], colours)
    axes.set_xlim(min(0.0, *values) * 1.15, max(0.0, *values) * 1.15 or 1.0)
    better = " (lower is better)" if measure in _LOWER else ""
    axes.set_xlabel(f"{measure} on the held-out documents of all parties{better}")
    axes.set_title("What the federation is worth")
    return axes


def _rows(results: Any) -> list[Mapping[str, Any]]:
    if isinstance(results, str | Path):
        try:
            results = json.loads(Path(results).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{results} does not hold the JSON of `tertulia scenarios --json`: {error}") from error
    rows = list(results.get("scenarios", ()) if isinstance(results, Mapping) else results)
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError("there are no scenarios to draw: give the rows of `tertulia scenarios --json`")
    return rows


def _label(row: Mapping[str, Any]) -> str:
    facts = [str(row["method"])] if row.get("method") else []
    facts += [f"{row['topics']} topic{'' if row['topics'] == 1 else 's'}"] if row.get("topics") else []
    return shown(str(row["scenario"]), 40) + (f" ({shown(', '.join(facts), 30)})" if facts else "")
