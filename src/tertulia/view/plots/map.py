"""Map of topics: topics with similar words stand close. Points are topics, never documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import F64
from tertulia.view.plane import faithful_or_none, hellinger, to_plane
from tertulia.view.plots.canvas import BLUE, SMALL, figure_of, new_axes
from tertulia.view.plots.labels import foreign, label, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

    from tertulia.models import Topics

_LARGEST, _SMALLEST = 700.0, 25.0  # areas of circles, in square points
_NUMBER = 7.0  # least radius in points of a circle with a number inside
_SIDES = ((1, 0, "left", "center"), (-1, 0, "right", "center"), (0, 1, "center", "bottom"), (0, -1, "center", "top"))


def draw_map(model: Topics, *, words: int = 2, ax: Axes | None = None) -> Axes:
    """Draw topics as circles as large as they are heavy; those with similar words stand close.

    Distances are Hellinger's, brought to a plane by multidimensional scaling. Labels that would overlap are left out,
    those of light topics first.
    """
    axes = new_axes(ax, (8.0, 6.0))
    topics = visible(model)
    distances = hellinger(model.topic_word[topics])
    places = to_plane(distances)
    weights = np.ones(len(topics)) if model.weights is None else model.weights[topics]
    sizes = np.maximum(_LARGEST * weights / (weights.max() or 1.0), _SMALLEST)
    axes.scatter(places[:, 0], places[:, 1], s=sizes, color=BLUE, alpha=0.35, edgecolors=BLUE)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.12)
    axes.set_aspect("equal", adjustable="datalim")
    axes.spines[:].set_visible(False)
    axes.set_title("Topics with similar words stand close")
    faithful = faithful_or_none(distances, places)
    said = "" if faithful is None else f"correlation of distances on the map with true ones: {faithful:.2f}"
    facts = ["" if model.weights is None else "area: weight", said]
    axes.set_xlabel("; ".join(fact for fact in facts if fact), fontsize=SMALL)
    _put_labels(axes, places, sizes, {k: label(model, k, words) for k in topics})
    return axes


def _put_labels(axes: Axes, places: F64, sizes: F64, labels: dict[int, str]) -> None:
    """Put a label beside each circle where there is room, large circles first; else its number."""
    figure_of(axes).draw_without_rendering()  # determines the position of the axes
    inside = axes.get_window_extent()
    scale = figure_of(axes).dpi / 72
    taken = [_circle(axes, place, size, scale) for place, size in zip(places, sizes, strict=True)]
    names = list(labels.items())
    for place in np.argsort(-sizes, kind="stable"):
        others = [box for j, box in enumerate(taken) if j != place]
        number, words = names[place]
        for text in (words, str(number)):
            radius = float(np.sqrt(sizes[place] / np.pi))
            centre = text is not words and radius >= _NUMBER
            for drawn in _tries(axes, text, places[place], radius, centre):
                box: Bbox = drawn.get_window_extent()
                within = inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
                if within and not any(box.overlaps(other) for other in others):
                    taken.append(box)
                    break
                drawn.remove()
            else:
                continue
            break


def _tries(axes: Axes, text: str, place: F64, radius: float, centre: bool) -> Iterator[Any]:
    """Yield the label in the centre of its circle, then at each side."""
    for x, y, ha, va in (((0, 0, "center", "center"),) if centre else ()) + _SIDES:
        drawn = axes.annotate(
            text, (place[0], place[1]), xytext=(x * (radius + 2), y * (radius + 2)), textcoords="offset points",
            ha=ha, va=va, fontsize=SMALL, **foreign(),
        )  # fmt: skip
        drawn.set_in_layout(False)
        yield drawn


def _circle(axes: Axes, place: F64, size: float, scale: float) -> Bbox:
    from matplotlib.transforms import Bbox

    centre, radius = axes.transData.transform(place), np.sqrt(size / np.pi) * scale
    return Bbox([centre - radius, centre + radius])
