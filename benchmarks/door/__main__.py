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

from benchmarks.common import finish, parser
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


def main() -> None:
    """Run the benchmark, or some parts of it."""
    command = parser("whether a party's door holds")
    command.add_argument("--parts", default=",".join(PARTS), help=f"a list from {','.join(PARTS)}; by default all")
    given = command.parse_args()
    parts = given.parts.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        raise SystemExit(f"--parts {','.join(unknown)}: choose from {','.join(PARTS)}")
    result: dict[str, Any] = {"benchmark": "door", "quick": given.quick}
    for part in parts:
        result |= PARTS[part](given.quick)
    finish(result)


if __name__ == "__main__":
    main()
