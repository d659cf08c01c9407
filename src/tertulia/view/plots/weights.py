"""Plot of topic weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tertulia._arrays import F64
from tertulia.corpus.inputs import Documents, with_column
from tertulia.errors import InputError
from tertulia.view.plots.canvas import BLUE, bar_size, draw_bars, new_axes, percent_ticks
from tertulia.view.plots.labels import label, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics


def draw_weights(
    model: Topics,
    documents: Documents | None = None,
    *,
    most: int = 25,
    column: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each topic's share of the tokens, heaviest first; of more than `most` topics the rest is added up below.

    They are the shares of training, or those in `documents`, where some are given.
    """
    if most < 1:
        raise InputError(f"most = {most}: show at least 1 topic")
    weights = _weights(model, None if documents is None else with_column(documents, column))
    order = np.array(sorted(visible(model), key=lambda k: -weights[k]))
    few, rest = order[:most], order[most:]
    labels, values = [label(model, int(k)) for k in few], weights[few].tolist()
    axes = new_axes(ax, bar_size(len(labels)))
    draw_bars(axes, labels, values, [f"{value:.1%}" for value in values], [BLUE] * len(values))
    axes.set_xlim(0, max(values) * 1.15)
    percent_ticks(axes.xaxis)
    more = f"; {len(rest)} more topics have {weights[rest].sum():.1%} together" if len(rest) else ""
    axes.set_xlabel(f"share of the tokens{'' if documents is None else ' in these documents'}{more}")
    axes.set_title("How heavy topics are")
    return axes


def _weights(model: Topics, documents: Documents | None) -> F64:
    if documents is not None:
        corpus = model.encode(documents)
        if corpus.n_tokens == 0:
            raise InputError("no document holds a word that the model knows: there is nothing to draw")
        corpus = corpus.select(corpus.lengths > 0)
        return np.asarray(np.average(model.transform(corpus), axis=0, weights=corpus.lengths))
    if model.weights is None:
        raise InputError("this model does not know how heavy its topics are: give documents, and theirs are drawn")
    return model.weights
