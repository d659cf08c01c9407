"""Plots of a model with matplotlib: `model.plot.words()`. Each has its own file and returns its axes."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Concatenate, Generic, ParamSpec, cast

from tertulia.view.plots.document import draw_document
from tertulia.view.plots.map import draw_map
from tertulia.view.plots.over_time import draw_over_time
from tertulia.view.plots.parties import draw_parties
from tertulia.view.plots.privacy import draw_privacy
from tertulia.view.plots.rounds import draw_rounds
from tertulia.view.plots.scenarios import draw_scenarios
from tertulia.view.plots.similarity import draw_similarity
from tertulia.view.plots.tradeoff import draw_tradeoff
from tertulia.view.plots.weights import draw_weights
from tertulia.view.plots.words import draw_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

P = ParamSpec("P")


class _OfModel(Generic[P]):
    """Descriptor that binds a plot function to the model; `help` shows it as a method of its other arguments."""

    def __init__(self, draw: Callable[Concatenate[Topics, P], Axes]) -> None:
        self._draw = draw

    def __get__(self, plots: Plots | None, kind: type) -> Callable[P, Axes]:
        bound = self._draw if plots is None else MethodType(self._draw, plots.model)
        return cast("Callable[P, Axes]", bound)


class Plots:
    """Plots of one model; each takes `ax=`, your own axes to draw into, and returns its axes."""

    def __init__(self, model: Topics) -> None:
        self.model = model

    words = _OfModel(draw_words)
    weights = _OfModel(draw_weights)
    map = _OfModel(draw_map)
    similarity = _OfModel(draw_similarity)
    document = _OfModel(draw_document)
    over_time = _OfModel(draw_over_time)
    parties = _OfModel(draw_parties)
    rounds = _OfModel(draw_rounds)
    privacy = _OfModel(draw_privacy)
    scenarios = staticmethod(draw_scenarios)  # of several models
    tradeoff = staticmethod(draw_tradeoff)

    def __repr__(self) -> str:
        return f"plots of a model: {', '.join(name for name in vars(Plots) if not name.startswith('_'))}"
