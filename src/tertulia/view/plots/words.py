"""Plot of the most probable words of topics, one group of bars for each topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tertulia.errors import InputError
from tertulia.view.plots.canvas import BLUE, SMALL, new_axes, write
from tertulia.view.plots.labels import chosen, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_TOPICS, _COLUMNS = 6, 3
_NAME = 24  # letters
_LABEL, _VALUE = 1.25, 0.45  # room left and right of bars, in lengths of the longest bar


def draw_words(model: Topics, topics: int | Sequence[int] | None = None, n: int = 8, *, ax: Axes | None = None) -> Axes:
    """Draw the n most probable words of some topics, with their probabilities; else of the six heaviest topics.

    Bars of all topics have the same scale.
    """
    if n < 1:
        raise InputError(f"n = {n}: show at least 1 word")
    numbers, n = chosen(model, topics, _TOPICS), min(n, len(model.vocabulary))
    columns = min(_COLUMNS, len(numbers))
    rows = -(-len(numbers) // columns)
    axes = new_axes(ax, (max(2.9 * columns, 4.8), 0.7 + rows * (0.45 + 0.19 * n)))
    longest = float(model.topic_word[numbers].max()) or 1.0
    block = (_LABEL + 1 + _VALUE) * longest
    for place, topic in enumerate(numbers):
        row, column = divmod(place, columns)
        left, top = column * block, row * (n + 2)
        words = np.argsort(-model.topic_word[topic], kind="stable")[:n]
        mass = model.topic_word[topic, words].astype(float)
        axes.barh(top + 1 + np.arange(n), mass, left=left, height=0.8, color=BLUE)
        name = f": {shown(model.names[topic], _NAME)}" if model.names[topic] else ""
        share = "" if model.weights is None else f", {model.weights[topic]:.1%}"
        write(axes, left, top, f"topic {topic}{name}{share}", weight="bold", fontsize=SMALL + 0.5, ha="center")
        for line, (word, p) in enumerate(zip(words, mass, strict=True), start=top + 1):
            write(axes, left - 0.05 * longest, line, shown(model.vocabulary.words[word]), ha="right")
            write(axes, left + p + 0.05 * longest, line, f"{p:.3f}", color="0.4", fontsize=SMALL - 1)
    axes.set_xlim(-_LABEL * longest, (columns - 1) * block + (1 + _VALUE) * longest)
    axes.set_ylim(rows * (n + 2) - 1.4, -0.8)
    axes.set_axis_off()
    which = f" ({len(numbers)} of {model.n_topics} topics)" if len(numbers) < model.n_topics else ""
    axes.set_title(f"Most probable words, with their probability{which}", fontsize=10)
    return axes
