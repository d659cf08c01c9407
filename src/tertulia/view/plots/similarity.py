"""Plot of topic similarity, within one model or between two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.models.compare import similarities
from tertulia.view.plots.canvas import draw_heat, heat_size, new_axes
from tertulia.view.plots.labels import label, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_MANY = 30  # greatest number of columns with words as labels


def draw_similarity(model: Topics, other: Any = None, *, top: int = 50, ax: Axes | None = None) -> Axes:
    """Draw how alike topics are, by weighted Jaccard on their `top` words: 1 for the same, 0 for none in common.

    Without another model similar topics stand side by side. With one, its topics are the columns, in the order in which
    they match the rows best, one to one; the diagonal shows what both models have found.
    """
    second = model if other is None else getattr(other, "topics_", other)
    here, there = np.array(visible(model)), np.array(visible(second))
    matrix = similarities(model, second, top)[np.ix_(here, there)]
    order, matching = _by_likeness(matrix) if other is None else _by_matching(matrix)
    matrix, rows, columns = matrix[np.ix_(order, matching)], here[order], there[matching]
    if other is None:
        np.fill_diagonal(matrix, np.nan)  # the diagonal says nothing, and would take all the contrast
    names = [label(second, int(k), 2) if other is not None and len(columns) <= _MANY else str(k) for k in columns]
    axes = new_axes(ax, heat_size(len(rows), len(columns)))
    draw_heat(axes, matrix, [label(model, int(k), 2) for k in rows], names, "similarity")
    axes.set_ylabel("topic")
    axes.set_xlabel("topic" if other is None else "topic of the other model")
    axes.set_title("How alike topics are" if other is None else "How alike the topics of two models are")
    return axes


def _by_likeness(matrix: F64) -> tuple[Array, Array]:
    """Order topics so that similar ones are side by side."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(matrix) < 3:
        return np.arange(len(matrix)), np.arange(len(matrix))
    distances = 1.0 - (matrix + matrix.T) / 2
    np.fill_diagonal(distances, 0.0)
    order = leaves_list(linkage(squareform(distances, checks=False), "average", optimal_ordering=True))
    return order, order


def _by_matching(matrix: F64) -> tuple[Array, Array]:
    """Order topics by a one-to-one matching, best pairs first, then topics without a partner."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(matrix, maximize=True)
    best = np.argsort(-matrix[rows, columns], kind="stable")
    rest = (np.setdiff1d(np.arange(n), used) for n, used in zip(matrix.shape, (rows, columns), strict=True))
    left, right = rest
    return np.concatenate([rows[best], left]), np.concatenate([columns[best], right])
