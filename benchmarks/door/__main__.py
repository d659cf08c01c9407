"""Test a party's defences: attacks, fuzzing, audits, and the cost of words off a list. `--parts` chooses.

attacks  `attacks`: every recorded attack, run again, by number; rows without a test are `missing`
fuzz     `fuzz`: damaged files and hostile messages; cases, exceptions that are not ours, crashes
audits   `audits`: the claimed epsilon of a report, and a lower bound of the real one
unk      `unk`: the cost of words off a list, which keep their places as one symbol
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
    run_parts("door", "test a party's defences", PARTS)
