"""Whether a party's door holds: attacks, fuzzing, audits, and what all of it costs. `--parts` chooses.

attacks  `attacks`: every attack that once worked, run again, by number
fuzz     `fuzz`: damaged files and hostile messages; cases, exceptions that are not ours, deaths
audits   `audits`: what a report is claimed to cost, and a lower bound of what it does cost
unk      `unk`: what words off a list cost, which keep their places as one symbol
cost     `cost`: CPU time and bytes of clear runs against the version before, and whether models are the same
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.door import cost, fuzz, unk
from benchmarks.door.attacks import attacks
from benchmarks.door.audits import audits

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "attacks": lambda _: {"attacks": attacks()},
    "fuzz": fuzz.run,
    "audits": lambda quick: {"audits": audits(20_000 if quick else 200_000)},
    "unk": unk.run,
    "cost": cost.run,
}


if __name__ == "__main__":
    run_parts("door", "whether a party's door holds", PARTS)
