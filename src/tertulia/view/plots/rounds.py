"""Plot of a measure, or of the bytes sent, by round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia.errors import InputError
from tertulia.view.plots.canvas import BLUE, ORANGE, new_axes, open_frame, put_legend, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_UNITS = {"GB": 1024**3, "MB": 1024**2, "kB": 1024, "bytes": 1}
_NAMES = {"perplexity": "held-out perplexity (lower is better)", "seconds": "seconds", "topics": "topics"}


def draw_rounds(model: Topics, what: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw `what` of a federated run's rounds: "perplexity", "bytes", "seconds", or another measure of its history.

    Without `what` it is the perplexity where parties scored held-out documents, else the bytes.
    """
    history: Sequence[Mapping[str, Any]] = getattr(model, "history", ())
    if not history:
        raise InputError("this model has no rounds to draw: only what the `fit` of a federation returns has a history")
    known = {name for facts in history for name, value in facts.items() if isinstance(value, int | float)} - {"round"}
    what = what or ("perplexity" if "perplexity" in known else "bytes")
    if what not in {*known, "bytes"}:
        raise InputError(f"the rounds have no '{what}': they have {', '.join(sorted({*known, 'bytes'}))}")
    axes = new_axes(ax, (6.4, 3.8))
    rounds = [facts.get("round", number) for number, facts in enumerate(history, 1)]
    if what == "bytes":
        _draw_bytes(axes, rounds, history)
    else:
        values = [facts.get(what, np.nan) for facts in history]
        axes.plot(rounds, values, marker="o", color=BLUE)
        axes.set_ylabel(_NAMES.get(what, what))
    whole_ticks(axes.xaxis)
    axes.set_xlim(min(rounds) - 0.6, max(rounds) + 0.6)
    axes.set_xlabel("round")
    axes.set_title(f"{what.capitalize()} by round")
    open_frame(axes)
    return axes


def _draw_bytes(axes: Axes, rounds: Sequence[int], history: Sequence[Mapping[str, Any]]) -> None:
    down, up = (np.array([sum(pair[i] for pair in facts["bytes"].values()) for facts in history]) for i in (0, 1))
    unit, scale = next((name, n) for name, n in _UNITS.items() if n == 1 or (up + down).max() >= n)
    axes.bar(rounds, up / scale, color=ORANGE, label="from parties")
    axes.bar(rounds, down / scale, bottom=up / scale, color=BLUE, label="to parties")
    axes.set_ylabel(f"{unit} of all parties")
    put_legend(axes)
