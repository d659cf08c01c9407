"""Audit all modes that promise something, break protections on purpose, and run attacks. `--parts` chooses.

replay   `replay`: violations that a replay on neighbours finds, by mode
audit    `audit`: by mode the claimed epsilon, a lower bound, and what a perfect attacker could have shown
broken   `broken`: broken protections that are caught, of how many
attacks  `attacks`: how often attacks are right, by mode, and how often a guess is

Finished cells are kept in `benchmarks/out/audits`, and an interrupted run goes on there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.audits.attacks import attacks
from benchmarks.audits.broken import broken
from benchmarks.audits.cells import SPENT
from benchmarks.audits.modes import audit
from benchmarks.audits.replay import replay_modes
from benchmarks.common import run_parts

_BY_PART: dict[str, float] = {}


def counted(name: str, work: Callable[[bool], dict[str, Any]]) -> Callable[[bool], dict[str, Any]]:
    """Return the same part, with the CPU seconds of all parts so far."""

    def run(quick: bool) -> dict[str, Any]:
        SPENT.clear()
        found = work(quick)
        _BY_PART[name] = round(sum(SPENT), 1)
        return {**found, "cpu_s": dict(_BY_PART)}

    return run


PARTS = {
    "replay": counted("replay", replay_modes),
    "audit": counted("audit", audit),
    "broken": counted("broken", broken),
    "attacks": counted("attacks", attacks),
}


if __name__ == "__main__":
    run_parts("audits", "audit what modes promise", PARTS)
