"""What can be seen of a run while it runs: `look` gives one object of plain data, which page and terminal show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tertulia.runs import federations, membership
from tertulia.view.watch.houses import FederationScene, PartyScene
from tertulia.view.watch.scene import Look, waiting
from tertulia.view.watch.trained import RunScene

__all__ = ["Look", "is_run", "watcher"]


def watcher(directory: Path) -> Callable[[], Look]:
    """A function that looks at a run's directory, a party's, a federation's or that of scenarios, each time anew.

    What it has read it keeps, so that looking often costs little. Nothing is written, and nobody waits for it.
    """
    scenes: dict[tuple[Path, int], RunScene | FederationScene | PartyScene] = {}

    def look() -> Look:
        place = _place_or_none(directory)
        if place is None:
            return waiting(directory)
        key = place, _begun(place)  # a demo that is repeated is another run in the same place
        if key not in scenes:
            scenes[key] = _scene(place, directory)
        return scenes[key].look()

    return look


def is_run(directory: Path) -> bool:
    """Whether a directory holds a run, or runs as scenarios have them, and is nobody's house."""
    return _place_or_none(directory) not in (None, directory) or (directory / "run.json").exists()


def _place_or_none(directory: Path) -> Path | None:
    houses = any((directory / name).exists() for name in (membership.FILE, federations.FILE))
    return directory if houses else _newest_run_or_none(directory)


def _scene(place: Path, asked: Path) -> RunScene | FederationScene | PartyScene:
    if (place / membership.FILE).exists():
        return PartyScene(place)
    return FederationScene(place) if (place / federations.FILE).exists() else RunScene(place, asked)


def _newest_run_or_none(directory: Path) -> Path | None:
    """The run in a directory; of several below one, as scenarios have them, the one that was begun last."""
    if (directory / "run.json").exists():
        return directory
    below = [path.parent for pattern in ("*/run.json", "*/*/run.json") for path in directory.glob(pattern)]
    return max(below, key=_begun, default=None)


def _begun(place: Path) -> int:
    try:
        return (place / "run.json").stat().st_mtime_ns
    except OSError:
        return 0
