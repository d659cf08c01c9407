"""Plot of quality against epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia.errors import InputError
from tertulia.view.plots.canvas import GREY, MARKS, PALETTE, new_axes, open_frame, put_legend, write
from tertulia.view.plots.labels import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT = 2.5  # factor by which "no noise" lies beyond the largest epsilon


def draw_tradeoff(
    points: Iterable[Sequence[Any] | Mapping[str, Any]],
    *,
    quality: str = "perplexity",
    better: str | None = None,
    references: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw points (epsilon, quality) or (epsilon, quality, name), or dicts with "epsilon", `quality` and "name".

    An epsilon of infinity, or None, is "no noise". Points of one name and epsilon, such as several seeds, become their
    mean, with a line from the least to the most. `references` are dashed lines, such as {"pooled": 1593}; `better` is
    "lower" or "higher", and written at the axis.
    """
    curves = _curves(points, quality)
    axes = new_axes(ax, (6.8, 4.2))
    finite = sorted({epsilon for curve in curves.values() for epsilon in curve if math.isfinite(epsilon)})
    beyond = finite[-1] * _LEFT if finite else 1.0
    for number, (name, curve) in enumerate(curves.items()):
        _draw_curve(axes, number, shown(name, 30), {e if math.isfinite(e) else beyond: v for e, v in curve.items()})
    axes.set_xscale("log")
    if any(math.isinf(epsilon) for curve in curves.values() for epsilon in curve):
        finite = [*finite, beyond]
    axes.set_xticks(finite, ["no noise" if epsilon == beyond else f"{epsilon:g}" for epsilon in finite])
    axes.minorticks_off()
    axes.margins(x=0.08)
    for name, value in (references or {}).items():
        axes.axhline(value, color=GREY, ls="--", lw=1, zorder=0)
        write(axes, 1.01, value, shown(name, 30), transform=axes.get_yaxis_transform(), color="0.35")
    axes.set_xlabel("epsilon (left: more privacy)")
    better = better or ("lower" if quality == "perplexity" else None)
    axes.set_ylabel(quality + (f" ({better} is better)" if better else ""))
    axes.set_title("What privacy costs")
    open_frame(axes)
    if len(curves) > 1 or next(iter(curves)):
        put_legend(axes, loc="best", bbox_to_anchor=None)
    return axes


def _draw_curve(axes: Axes, number: int, name: str, curve: Mapping[float, list[float]]) -> None:
    epsilons = sorted(curve)
    means = np.array([np.mean(curve[epsilon]) for epsilon in epsilons])
    least, most = (np.array([extreme(curve[epsilon]) for epsilon in epsilons]) for extreme in (min, max))
    style: dict[str, Any] = {"color": PALETTE[number % len(PALETTE)], "marker": MARKS[number % len(MARKS)]}
    axes.errorbar(epsilons, means, yerr=[means - least, most - means], capsize=3, label=name, **style)


def _curves(points: Iterable[Any], quality: str) -> dict[str, dict[float, list[float]]]:
    """Group values by name and epsilon."""
    curves: dict[str, dict[float, list[float]]] = {}
    for point in points:
        try:
            if isinstance(point, Mapping):
                epsilon, value, name = point["epsilon"], point[quality], point.get("name", "")
            else:
                epsilon, value, name = (*point, "")[:3]
            epsilon, value = math.inf if epsilon is None else float(epsilon), float(value)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{point!r} is no point: give (epsilon, {quality}), or a dict with both") from error
        if not epsilon > 0 or not math.isfinite(value):
            raise InputError(f"{point!r}: epsilon must be positive, and {quality} a number")
        curves.setdefault(str(name), {}).setdefault(epsilon, []).append(value)
    if not curves:
        raise InputError("there are no points to draw")
    return curves
