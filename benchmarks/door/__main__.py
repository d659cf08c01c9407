"""Whether a party's door holds: attacks, fuzzing, audits, and what words off a list cost. `--parts` chooses.

attacks  `attacks`: every attack on record, run again, by number; rows without a test are `missing`
fuzz     `fuzz`: damaged files and hostile messages; cases, exceptions that are not ours, deaths
audits   `audits`: what a report is claimed to cost, and a lower bound of what it does cost
unk      `unk`: what words off a list cost, which keep their places as one symbol
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.door import fuzz, unk
from benchmarks.door.attacks import attacks, summary
from benchmarks.door.audits import audits

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "attacks": lambda quick: summary(attacks(quick)),
    "fuzz": fuzz.run,
    "audits": lambda quick: {"audits": audits(20_000 if quick else 200_000)},
    "unk": unk.run,
}


if __name__ == "__main__":
    run_parts("door", "whether a party's door holds", PARTS)
