"""Plots of a comparison of parties; each method draws one plot and returns its axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia.applications.comparison import Comparison, Measure, similarities, to_shares
from tertulia.errors import InputError
from tertulia.view.plots.canvas import new_axes, put_legend
from tertulia.view.plots.labels import foreign, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "osD^vPX*<>"


class Figures:
    """Plots of one comparison; give `ax` to draw into axes of your own."""

    def __init__(self, found: Comparison) -> None:
        self.found = found

    def prevalence(self, top: int | None = None, *, bars: bool = True, ax: Axes | None = None) -> Axes:
        """Draw a row for each topic (or the `top` ones), a mark for each party: its share of the party's documents.

        `bars` are two standard errors to each side, at most: few documents, and noise.
        """
        found = self.found
        largest = np.nan_to_num(found.prevalence).max(axis=0)
        order = np.argsort(largest)[-(top or found.n_topics) :]  # topics with the largest share at any party on top
        axes, rows = new_axes(ax, (8, 1.2 + 0.42 * len(order))), np.arange(len(order))
        spread = np.linspace(-0.3, 0.3, len(found.names)) if len(found.names) > 1 else [0.0]
        for r, name in enumerate(found.names):
            share, reach = found.prevalence[r, order], 2 * found.margins[r, order]
            drawn = bars and not np.isnan(reach).all()
            axes.errorbar(
                share, rows - spread[r], xerr=np.stack([np.minimum(reach, share), reach]) if drawn else None,
                fmt=_MARKS[r % len(_MARKS)], color=_colours(len(found.names))[r], ms=4.5, elinewidth=0.7,
                label=shown(name),
            )  # fmt: skip
        for row in rows[1:]:
            axes.axhline(row - 0.5, color="0.9", lw=0.8, zorder=0)
        axes.set_yticks(rows, [self._label(k) for k in order], fontsize=8, **foreign())
        axes.set_ylim(-0.6, len(order) - 0.4)
        axes.set_xlim(left=0)
        axes.set_xlabel(f"share of a party's {found.weigh}")
        put_legend(axes, title="party")
        return axes

    def similarity(self, measure: Measure = "jensen-shannon", *, ax: Axes | None = None) -> Axes:
        """Draw a heat map of how alike parties are, similar ones side by side."""
        found, order = self.found, self.found.order()
        matrix = similarities(found.prevalence, measure)[np.ix_(order, order)]
        n = len(order)
        axes = new_axes(ax, (2.2 + 0.55 * n, 1.4 + 0.5 * n))
        np.fill_diagonal(matrix, np.nan)  # the diagonal says nothing, and would take all the contrast
        known = matrix[~np.isnan(matrix)]
        low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        image = axes.imshow(matrix, cmap="viridis", vmin=low, vmax=high, aspect="auto")
        axes.set_facecolor("0.92")
        for (i, j), value in np.ndenumerate(matrix):
            ink = "black" if np.isnan(value) or value > (low + high) / 2 else "white"
            text = "" if i == j else "–" if np.isnan(value) else f"{value:.2f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=ink)
        names = [shown(found.names[r]) for r in order]
        axes.set_xticks(range(n), names, rotation=45, ha="right", rotation_mode="anchor", **foreign())
        axes.set_yticks(range(n), names, **foreign())
        axes.figure.colorbar(image, ax=axes, label=f"similarity (1 less {measure} distance)")
        return axes

    def sharing(self, *, by_size: bool = False, ax: Axes | None = None) -> Axes:
        """Draw a bar for each topic, divided among the parties that it lives in: private ones below, shared on top."""
        found = self.found
        axes = new_axes(ax, (8, 1.2 + 0.34 * found.n_topics))
        shares, effective = found.party_shares(by_size=by_size), found.effective_parties(by_size=by_size)
        kinds = found.table(by_size=by_size)["kind"].to_list()
        order, left = np.argsort(np.nan_to_num(effective)), np.zeros(found.n_topics)
        for r, name in enumerate(found.names):
            width = np.nan_to_num(shares[r, order])
            axes.barh(range(found.n_topics), width, left=left, color=_colours(len(found.names))[r], label=shown(name))
            left += width
        for row, k in enumerate(order):
            axes.text(1.01, row, f"{effective[k]:.1f}  {kinds[k]}", va="center", fontsize=8)
        axes.text(1.01, found.n_topics - 0.4, "effective parties", fontsize=8, va="bottom", style="italic")
        axes.set_yticks(range(found.n_topics), [self._label(k) for k in order], fontsize=8, **foreign())
        axes.set(xlim=(0, 1), ylim=(-0.6, found.n_topics - 0.4))
        axes.set_xlabel("where a topic lives" + (", by documents" if by_size else ", parties counting alike"))
        put_legend(axes, title="party", bbox_to_anchor=(1.2, 1.0))
        return axes

    def over_time(
        self, topics: Sequence[int] | None = None, *, party: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw how topics' shares move, of all parties together or of one; by default the six largest topics."""
        found = self.found
        found.over_time()  # raises an error if there are no periods
        if party is not None and party not in found.names:
            raise InputError(f"there is no party '{party}': they are {list(found.names)}")
        chosen = [party is None or name == party for name in found.names]
        shares = to_shares(found.released[chosen].sum(axis=0))  # [P, K]
        largest = np.argsort(-np.nan_to_num(shares).mean(axis=0))[:6].tolist()
        axes = new_axes(ax, (8, 4))
        for n, k in enumerate(largest if topics is None else topics):
            axes.plot(found.periods, shares[:, k], marker=_MARKS[n % len(_MARKS)], label=self._label(k))
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"share of {found.weigh}" + (f" of {shown(party)}" if party else ""), **foreign())
        axes.set_xticks(range(len(found.periods)), found.periods, rotation=45, ha="right", rotation_mode="anchor")
        put_legend(axes)
        return axes

    def _label(self, topic: int) -> str:
        return f"{topic}: {' '.join(shown(word) for word in self.found.words[topic][:3])}"


def _colours(n: int) -> Any:
    import matplotlib as mpl

    names = mpl.colormaps["tab10" if n <= 10 else "tab20"]
    return [names(r % names.N) for r in range(n)]
