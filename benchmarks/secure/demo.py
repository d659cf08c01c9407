"""The demo with secure sums and without: seconds of training."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.common import say
from tertulia.cli.demo import train_demo
from tertulia.corpus.demo_corpus import demo_teams


def demo_s(quick: bool) -> dict[str, Any]:
    """Train the demo's model with and without masks, in turns; the first of each compiles and is not counted."""
    teams, took = demo_teams(), {"plain": [], "secure": []}  # type: tuple[Any, dict[str, list[float]]]
    for _ in range(2 if quick else 4):
        for name in took:
            started = time.monotonic()
            train_demo(teams, secure=name == "secure")
            took[name].append(time.monotonic() - started)
            say(f"demo, {name}: {took[name][-1]:.1f} s")
    return {"demo_s": {name: round(statistics.median(seconds[1:]), 1) for name, seconds in took.items()}}
