"""Plot of what left the parties of a run, and its protection."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tertulia.errors import InputError
from tertulia.federation.party.reports import REPORTS
from tertulia.view.console import size
from tertulia.view.plots.canvas import BLUE, GREY, VERMILION, bar_size, draw_bars, new_axes, put_legend
from tertulia.view.plots.labels import shown
from tertulia.view.tables import thing_rows
from tertulia.view.verdicts import hosts_in, number_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_MEANING = {VERMILION: "in clear", BLUE: "with noise", GREY: "declared public"}


class _Thing(NamedTuple):
    """One kind of release, over all parties."""

    what: str
    bytes: int
    releases: int
    epsilon: float  # of the party with the largest
    unit: str  # that epsilon protects
    public: bool

    @property
    def colour(self) -> str:
        return GREY if self.public else VERMILION if math.isinf(self.epsilon) else BLUE

    @property
    def note(self) -> str:
        times = "once" if self.releases == 1 else f"{self.releases} times"
        sent = size(self.bytes) if self.bytes else "stays at the party"
        cost = (
            ""
            if self.public
            else ", no bound"
            if math.isinf(self.epsilon)
            else f", epsilon {self.epsilon:.3g} of a {self.unit}"
        )
        return f"{sent}, {times}{cost}"


def draw_privacy(
    model: Topics,
    run: str | Path | None = None,
    *,
    by: Literal["bytes", "epsilon"] = "bytes",
    delta: float = 1e-6,
    ax: Axes | None = None,
) -> Axes:
    """Draw what left the parties, thing by thing: how much (`by="bytes"`), or what it costs (`by="epsilon"`).

    It is read from the parties' own ledgers, in the directory of the model's run, or in `run`: a run's directory, or
    that of one party. Red left in clear, blue with noise that keeps the epsilon which is written beside it.
    """
    directory = run or getattr(model, "directory", None)
    if directory is None or not Path(directory).exists():
        raise InputError(
            "the ledgers of this model's run are not there: fit with directory='runs/...', or give a run's directory"
        )
    if by not in ("bytes", "epsilon"):
        raise InputError(f"by = '{by}': use 'bytes' or 'epsilon'")
    hosts = hosts_in(Path(directory))
    things = _things([row for host in hosts for row in thing_rows(host, delta)])
    if not things:
        raise InputError(f"nothing has left the parties of {directory} yet: there is nothing to draw")
    axes = new_axes(ax, bar_size(len(things), 9.0))
    values = [float(thing.bytes) for thing in things] if by == "bytes" else _epsilons(things)
    draw_bars(axes, [shown(t.what, 40) for t in things], values, [t.note for t in things], [t.colour for t in things])
    if by == "bytes":
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(0, max(*values, 10.0) ** 1.6)
        axes.set_xticks([1024**power for power in range(5) if 1024**power <= max(*values, 10.0)])
        axes.xaxis.set_major_formatter(lambda n, _: size(n))
        axes.minorticks_off()
    else:
        axes.set_xlim(0, max(*values, 1e-9) * 1.6)
        if not any(thing.colour == BLUE for thing in things):
            axes.set_xticks([])  # without an epsilon there is no scale
    cost = f"real epsilon at delta {delta:g}; things from one source cost it only once"
    axes.set_xlabel("bytes that left all parties (logarithmic)" if by == "bytes" else cost)
    who = "1 party" if len(hosts) == 1 else f"{len(hosts)} parties"
    axes.set_title(f"What left {who}, and how it was protected")
    _explain(axes, {thing.colour for thing in things})
    return axes


def _things(rows: list[dict[str, Any]]) -> list[_Thing]:
    """Add up the rows of single parties, the largest first."""
    found: dict[tuple[str, str, bool], _Thing] = {}
    for row in rows:
        key = (row["what"], row["unit"].replace("token", "word"), row["mechanism"] == "public")
        sent = 0 if row["verb"] == REPORTS else row["bytes"]
        before = found.get(key, _Thing(key[0], 0, 0, 0.0, *key[1:]))
        worst = max(before.epsilon, number_of(row["real epsilon"]))
        found[key] = before._replace(
            bytes=before.bytes + sent, releases=before.releases + row["releases"], epsilon=worst
        )
    return sorted(found.values(), key=lambda thing: -thing.bytes)


def _epsilons(things: list[_Thing]) -> list[float]:
    """Return the length of a bar: longer than all others if there is no bound, zero if it is public."""
    finite = [thing.epsilon for thing in things if not thing.public and math.isfinite(thing.epsilon)]
    beyond = 1.25 * max(finite, default=0.8)
    return [0.0 if t.public else t.epsilon if math.isfinite(t.epsilon) else beyond for t in things]


def _explain(axes: Axes, used: set[str]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=colour, label=meaning) for colour, meaning in _MEANING.items() if colour in used]
    put_legend(axes, handles=handles)
