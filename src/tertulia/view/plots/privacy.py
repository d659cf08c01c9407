"""Plot of what left the parties of a run, and its protection."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tertulia.errors import InputError
from tertulia.federation.party.reports import REPORTS
from tertulia.view.console import counted, size
from tertulia.view.plots.canvas import (
    BLUE,
    GREY,
    ORANGE,
    VERMILION,
    bar_size,
    draw_bars,
    inches_of,
    new_axes,
    put_legend,
)
from tertulia.view.plots.labels import shown
from tertulia.view.tables import thing_rows
from tertulia.view.verdicts import hosts_in, number_of, often

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_MEANING = {
    VERMILION: "in clear", ORANGE: "masked, or for members only", BLUE: "with noise", GREY: "declared public",
}  # fmt: skip


_ROOM = 2.0  # the length of the axis, as a multiple of the longest bar: notes stand at the ends of bars

_LABEL = 0.5  # inches that ticks and label take below the axis


class _Thing(NamedTuple):
    """One kind of release, over all parties."""

    what: str
    unit: str  # that epsilon protects
    public: bool
    hidden: bool  # whether the server can read only totals of it, or nothing
    times: dict[str, int]  # by party
    bytes: int = 0  # of all parties
    exact: bool = True  # whether `bytes` are those that travelled; else some are those before packing
    epsilon: float = 0.0  # of the party with the largest
    delta: float = 0.0  # at which that epsilon holds

    @property
    def colour(self) -> str:
        clear = ORANGE if self.hidden else VERMILION
        return GREY if self.public else clear if math.isinf(self.epsilon) else BLUE

    @property
    def note(self) -> str:
        return ", ".join(filter(None, (self._sent, self._often, self._cost)))

    @property
    def _sent(self) -> str:
        if not self.bytes:
            return "stays at the party" if len(self.times) == 1 else "stays at the parties"
        return f"{'' if self.exact else 'up to '}{size(self.bytes)}"

    @property
    def _often(self) -> str:
        least, most = min(self.times.values()), max(self.times.values())
        times = often(most) if least == most else f"{least} to {most} times"
        return times if len(self.times) == 1 else f"{times} each"

    @property
    def _cost(self) -> str:
        if self.public:
            return ""
        if math.isinf(self.epsilon):
            return "no bound"
        return f"epsilon {self.epsilon:.3g} at delta {self.delta:g} of a {self.unit}"


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
    that of one party. Red left in clear, orange masked or for members only, blue with noise that keeps
    the epsilon which is written beside it.
    """
    directory = run or getattr(model, "directory", None)
    if directory is None or not Path(directory).exists():
        raise InputError(
            "the ledgers of this model's run are not there: fit with directory='runs/...', or give a run's directory"
        )
    if by not in ("bytes", "epsilon"):
        raise InputError(f"by = '{by}': use 'bytes' or 'epsilon'")
    hosts = hosts_in(Path(directory))
    things = things_of([row for host in hosts for row in thing_rows(host, delta)])
    if not things:
        raise InputError(f"nothing has left the parties of {directory} yet: there is nothing to draw")
    axes = new_axes(ax, bar_size(len(things) + 1, 9.0))
    values = [float(thing.bytes) for thing in things] if by == "bytes" else _epsilons(things)
    draw_bars(axes, [shown(t.what, 40) for t in things], values, [t.note for t in things], [t.colour for t in things])
    if by == "bytes":
        axes.set_xscale("symlog", linthresh=1.0)
        axes.set_xlim(0, max(*values, 10.0) ** _ROOM)
        axes.set_xticks([1024**power for power in range(5) if 1024**power <= max(*values, 10.0)])
        axes.xaxis.set_major_formatter(lambda n, _: size(n))
        axes.minorticks_off()
    else:
        axes.set_xlim(0, max(*values, 1e-9) * _ROOM)
        if not any(thing.colour == BLUE for thing in things):
            axes.set_xticks([])  # without an epsilon there is no scale
    cost = f"real epsilon at delta {delta:g}; things from one source cost it only once"
    axes.set_xlabel("bytes that left all parties (logarithmic)" if by == "bytes" else cost)
    who = counted(len(hosts), "party", "parties")
    axes.set_title(f"What left {who}, and how it was protected")
    _explain(axes, {thing.colour for thing in things})
    return axes


def things_of(rows: list[dict[str, Any]]) -> list[_Thing]:
    """Add up the rows of single parties, the largest first; bytes that were not recorded are those before packing."""
    found: dict[tuple[str, str, bool, bool], _Thing] = {}
    for row in rows:
        hidden = row["masked"] or row["verb"] == "relay"
        key = (row["what"], row["unit"].replace("token", "word"), row["mechanism"] == "public", hidden)
        before = found.get(key) or _Thing(*key, {})
        known = row["verb"] == REPORTS or row["bytes"] is not None
        sent = 0 if row["verb"] == REPORTS else row["bytes"] if known else row["before packing"]
        worst, delta = max((before.epsilon, before.delta), (number_of(row["real epsilon"]), row["delta"]))
        found[key] = before._replace(
            times=before.times | {row["party"]: before.times.get(row["party"], 0) + row["releases"]},
            bytes=before.bytes + sent,
            exact=before.exact and known,
            epsilon=worst,
            delta=delta,
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
    below = -_LABEL / inches_of(axes)[1]
    put_legend(axes, handles=handles, loc="upper left", bbox_to_anchor=(0.0, below), ncols=len(handles))
