"""Plot of topics by party, from the models that parties have released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tertulia.errors import InputError
from tertulia.models.compare import similarities
from tertulia.view.plots.canvas import draw_heat, heat_size, new_axes
from tertulia.view.plots.labels import label, shown, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics


def draw_parties(model: Topics, *, top: int = 50, ax: Axes | None = None) -> Axes:
    """Draw for each topic and party how similar the party's most similar topic is (weighted Jaccard of `top` words).

    Topics that many parties hold stand on top. Only models that parties have released are looked at
    (`model.local`); methods that never see one, such as Consensus, have nothing to show: `tertulia compare` then asks
    the parties.
    """
    local: dict[str, Topics] = getattr(model, "local", {})
    if not local:
        raise InputError(
            "no party has released a model of its own, so nobody knows which topics it holds: `tertulia compare` asks "
            "the parties of a run, FTM has such models"
        )
    held = np.stack([similarities(model, own, top).max(axis=1) for own in local.values()], axis=1)  # [K, parties]
    order = sorted(visible(model), key=lambda k: -held[k].mean())
    axes = new_axes(ax, heat_size(len(order), len(local)))
    names = [shown(party) for party in local]
    draw_heat(axes, held[order], [label(model, k) for k in order], names, "similarity of its nearest topic")
    axes.set_title("Which parties hold which topics")
    return axes
