"""A map of topics: what stands close has similar words. Points are topics, never documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.view.plots.canvas import BLUE, SMALL, figure_of, new_axes
from tertulia.view.plots.letters import foreign, label, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

    from tertulia.models import Topics

_STEPS = 200
_LARGEST, _SMALLEST = 700.0, 25.0  # areas of circles, in square points
_NUMBER = 7.0  # the least radius, in points, of a circle that a number fits in
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


def hellinger(topic_word: Array) -> F64:
    """Hellinger's distances of topics, [K, K]: 0 for the same words, 1 for none in common."""
    roots = np.sqrt(topic_word.astype(np.float64))
    overlap = np.clip(roots @ roots.T, 0.0, 1.0)
    distances: F64 = np.sqrt(1.0 - overlap)
    np.fill_diagonal(distances, 0.0)
    return distances


def to_plane(distances: F64) -> F64:
    """Places [K, 2] whose distances are like the ones given: classical scaling, then steps of SMACOF."""
    K = len(distances)
    centred = distances**2 - (distances**2).mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (centred - centred.mean(axis=1, keepdims=True)))
    places: F64 = np.zeros((K, 2))
    found = min(K, 2)
    places[:, :found] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :found]
    places *= np.sign(places[np.abs(places).argmax(axis=0), range(2)])  # eigenvectors have no sign of their own
    for _ in range(_STEPS):
        now = _between(places)
        ratio = np.divide(distances, now, out=np.zeros_like(now), where=now > 1e-12)
        places = (ratio.sum(axis=1, keepdims=True) * places - ratio @ places) / K
    return places


def _between(places: F64) -> F64:
    return np.asarray(np.linalg.norm(places[:, None] - places[None], axis=2))


def faithful_or_none(distances: F64, places: F64) -> float | None:
    """How far the map can be believed: the correlation of distances on it with true ones, where there are enough."""
    pairs = np.triu_indices(len(distances), 1)
    true, drawn = distances[pairs], _between(places)[pairs]
    if len(true) < 3 or true.std() < 1e-9 or drawn.std() < 1e-9:
        return None
    return float(np.corrcoef(true, drawn)[0, 1])


def _put_labels(axes: Axes, places: F64, sizes: F64, labels: dict[int, str]) -> None:
    """Beside each circle, the large ones first, wherever there is room; a number alone where a label finds none."""
    figure_of(axes).draw_without_rendering()  # settles where the axes are
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
    """The label at each side of its circle; before that in its centre."""
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
