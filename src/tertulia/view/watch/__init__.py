"""Monitors of runs: each takes snapshots, plain data that the live page and the terminal show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tertulia.network.party import party_directory as membership
from tertulia.network.server import federation_directory as federations
from tertulia.view.watch.network import FederationMonitor, PartyMonitor
from tertulia.view.watch.run import RunMonitor
from tertulia.view.watch.snapshot import Snapshot, waiting

__all__ = ["Snapshot", "is_run", "monitor"]


def monitor(directory: Path) -> Callable[[], Snapshot]:
    """Return a function that takes a snapshot of a directory: of a run, a party, a federation or scenarios.

    It caches what it has read, so that frequent snapshots cost little. It writes nothing and blocks nobody.
    """
    monitors: dict[tuple[Path, int], RunMonitor | FederationMonitor | PartyMonitor] = {}

    def snapshot() -> Snapshot:
        place = _place_or_none(directory)
        if place is None:
            return waiting(directory)
        key = place, _start_time(place)  # a repeated demo is another run in the same directory
        if key not in monitors:
            monitors[key] = _monitor(place, directory)
        return monitors[key].snapshot()

    return snapshot


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run, or the runs of scenarios, and is not the directory of a party or federation."""
    return _place_or_none(directory) not in (None, directory) or (directory / "run.json").exists()


def _place_or_none(directory: Path) -> Path | None:
    on_network = any((directory / name).exists() for name in (membership.FILE, federations.FILE))
    return directory if on_network else _newest_run_or_none(directory)


def _monitor(place: Path, asked: Path) -> RunMonitor | FederationMonitor | PartyMonitor:
    if (place / membership.FILE).exists():
        return PartyMonitor(place)
    return FederationMonitor(place) if (place / federations.FILE).exists() else RunMonitor(place, asked)


def _newest_run_or_none(directory: Path) -> Path | None:
    """Find the run in a directory; of several below it, as scenarios have them, the one that was started last."""
    if (directory / "run.json").exists():
        return directory
    below = [path.parent for pattern in ("*/run.json", "*/*/run.json") for path in directory.glob(pattern)]
    return max(below, key=_start_time, default=None)


def _start_time(place: Path) -> int:
    try:
        return (place / "run.json").stat().st_mtime_ns
    except OSError:
        return 0
