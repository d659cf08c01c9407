"""Plot of topic shares over time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.view.plots.canvas import MARKS, PALETTE, new_axes, open_frame, percent_ticks, put_legend, put_ticks
from tertulia.view.plots.labels import chosen, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.corpus.periods import By
    from tertulia.models import Topics

_TOPICS = 6


def draw_over_time(
    model: Topics,
    documents: Documents,
    by: By = "month",
    date: str | None = None,
    *,
    topics: int | Sequence[int] | None = None,
    column: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean share of topics in documents by month, quarter or year; of the six largest topics, or of `topics`.

    The title says so where topics are left out.
    Documents have their dates in a column `date`, unless `date` names another, as for `model.over_time`, whose table
    this shows. It is for one's own documents: what it shows of few of them is what these are about.
    """
    table = model.over_time(documents, by, date, column=column)
    periods = table["period"].drop_nulls().unique(maintain_order=True).to_list()
    dated = table.drop_nulls("period")
    shown = dated["topic"][: len(dated) // len(periods)].to_list()
    shares = dated["share"].to_numpy().astype(float).reshape(len(periods), len(shown))  # null is NaN: a gap
    documents_of = dated["documents"].to_numpy().reshape(shares.shape)[:, 0]
    if not documents_of.any():
        raise InputError("no document with a date holds a word that the model knows: there is nothing to draw")
    if len(dated) < len(table):
        lost = table.filter(table["period"].is_null())["documents"][0]
        warnings.warn(f"{lost} documents are left out: their dates cannot be read", stacklevel=2)
    largest = np.argsort(-np.nan_to_num(shares).T @ documents_of, kind="stable")[:_TOPICS]
    numbers = [shown[place] for place in largest] if topics is None else chosen(model, topics, _TOPICS)
    axes = new_axes(ax, (8.0, 4.0))
    for place, k in enumerate(numbers):
        if k not in shown:
            raise InputError(f"topic {k} is hidden: `model.unhide([{k}])` shows it again")
        style: dict[str, Any] = {"color": PALETTE[place % len(PALETTE)], "marker": MARKS[place % len(MARKS)]}
        axes.plot(range(len(periods)), shares[:, shown.index(k)], label=label(model, k), ms=4, **style)
    axes.set_xlim(-0.5, len(periods) - 0.5)
    put_ticks(axes.xaxis, periods, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylim(bottom=0)
    percent_ticks(axes.yaxis)
    axes.set_ylabel(f"mean share in the documents of a {by}")
    which = (
        f" ({len(numbers)} {'largest ' * (topics is None)}of {len(shown)} topics)" if len(numbers) < len(shown) else ""
    )
    axes.set_title(f"How topics move over time{which}")
    open_frame(axes)
    put_legend(axes)
    return axes
