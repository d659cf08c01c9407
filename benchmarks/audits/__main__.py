"""Audit all modes that promise something, break protections on purpose, and run attacks. `--parts` chooses.

replay   `replay`: violations that a replay on neighbours finds, by mode
audit    `audit`: by mode the claimed epsilon, a lower bound, and what a perfect attacker could have shown
broken   `broken`: broken protections that are caught, of how many
attacks  `attacks`: how often attacks are right, by mode, and how often a guess is

Finished cells are kept in `benchmarks/out/audits`, and an interrupted run goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.audits.attacks import attacks
from benchmarks.audits.broken import broken
from benchmarks.audits.modes import audit
from benchmarks.audits.replay import replay_modes
from benchmarks.common import run_parts

_SPENT: dict[str, float] = {}


def timed(name: str, work: Callable[[bool], dict[str, Any]]) -> Callable[[bool], dict[str, Any]]:
    """Return the same part, with the CPU seconds of all parts so far."""

    def run(quick: bool) -> dict[str, Any]:
        start = time.process_time()
        found = work(quick)
        _SPENT[name] = round(time.process_time() - start, 1)
        return {**found, "cpu_s": dict(_SPENT)}

    return run


PARTS = {
    "replay": timed("replay", lambda quick: {"replay": replay_modes(quick)}),
    "audit": timed("audit", audit),
    "broken": timed("broken", broken),
    "attacks": timed("attacks", attacks),
}


if __name__ == "__main__":
    run_parts("audits", "audit what modes promise", PARTS)
