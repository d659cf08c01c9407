"""Fuzz loaders and steps: for any input, the result is right or a `TertuliaError`.

`fuzz(target, cases, seed)` counts cases, alien exceptions (other than `TertuliaError`) and deaths (the process ends by
a signal, or exceeds its memory limit). Cases run in a child process with little memory. When a child dies, its progress
file names the case, and the next child continues after it.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common import finish, parser, say

TARGETS = {
    **dict.fromkeys(
        ("codec", "packing", "frame", "answer", "journal", "answers", "topics", "neural", "corpus", "run", "party",
         "policy", "config", "ledger"),
        "benchmarks.door.loaders",
    ),
    "steps": "benchmarks.door.hostile_steps",
}  # fmt: skip
CASES = {"topics": 30_000, "codec": 30_000, "steps": 20_000, "neural": 5_000, "ledger": 5_000}  # else:
_USUAL = 15_000
Facts = dict[str, Any]
_MEMORY = 3 << 30  # bytes that a child may allocate after its imports
_MOST_DEATHS = 20  # then something is wrong with all cases
_SHOWN = 5  # alien exceptions that are written out, by kind and place


class Result(NamedTuple):
    """Counts of one target, with examples of alien exceptions."""

    cases: int
    alien: int
    deaths: int
    examples: tuple[str, ...] = ()


def fuzz(target: str, cases: int, seed: int = 0, patience: float = 3600) -> Result:
    """Run `cases` cases against a target, in child processes."""
    done = alien = deaths = 0
    examples: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        while done < cases:
            command = [sys.executable, "-m", __spec__.name, "--child", target, str(done), str(cases), str(seed)]
            child = subprocess.run(
                [*command, str(progress)], capture_output=True, text=True, timeout=patience, env=_environment()
            )
            found: dict[str, Any] = (
                json.loads(progress.read_text()) if progress.exists() else {"next": done, "alien": 0, "texts": []}
            )
            if child.returncode == 2 or deaths >= _MOST_DEATHS:
                raise RuntimeError(child.stderr)
            alien += found["alien"]
            examples += found["texts"]
            if child.returncode == 0:
                break
            deaths += 1
            examples.append(f"case {found['next']}: died with {child.returncode} {child.stderr[-300:]}")
            done = found["next"] + 1
            progress.unlink(missing_ok=True)
    return Result(cases, alien, deaths, tuple(examples))


def run(quick: bool = False, targets: Sequence[str] = tuple(TARGETS), cases: int | None = None, seed: int = 1) -> Facts:
    """Return `{"fuzz": {target: [cases, alien, deaths]}}`; `quick` runs a tenth of the usual cases."""
    found = {}
    for name in targets:
        found[name] = fuzz(name, cases or CASES.get(name, _USUAL) // (10 if quick else 1), seed)
        say(f"{name}: {found[name]}")
    return {"fuzz": {name: [one.cases, one.alien, one.deaths] for name, one in found.items()}}


def fuzz_here(target: str, first: int, last: int, seed: int, progress: Path | None = None) -> Result:
    """Run cases in this process."""
    examples: dict[str, str] = {}
    alien = 0
    with tempfile.TemporaryDirectory() as folder:
        case = importlib.import_module(TARGETS[target]).prepare(target, Path(folder))
        for number in range(first, last):
            if progress is not None:
                progress.write_text(json.dumps({"next": number, "alien": alien, "texts": list(examples.values())}))
            kind = case(random.Random(f"{target}/{seed}/{number}"))
            if kind is not None:
                alien += 1
                if len(examples) < _SHOWN:
                    examples.setdefault(kind, f"case {number}: {kind}")
    if progress is not None:
        progress.write_text(json.dumps({"next": last, "alien": alien, "texts": list(examples.values())}))
    return Result(last - first, alien, 0, tuple(examples.values()))


def _environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "POLARS_MAX_THREADS": "1"}


def _child(target: str, first: int, last: int, seed: int, progress: Path) -> None:
    module = importlib.import_module(TARGETS[target])
    module.warm_up(target)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, used + _MEMORY))
    fuzz_here(target, first, last, seed, progress)


def main() -> None:
    """Run `python -m benchmarks.door.fuzz [TARGET ...] [--cases N]`."""
    if sys.argv[1:2] == ["--child"]:
        target, first, last, seed, progress = sys.argv[2:]
        _child(target, int(first), int(last), int(seed), Path(progress))
        return
    command = parser("Fuzzing of loaders and steps")
    command.add_argument("targets", nargs="*", default=list(TARGETS), help=f"from {', '.join(TARGETS)}; by default all")
    command.add_argument("--cases", type=int, help="for each target")
    command.add_argument("--seed", type=int, default=1)
    asked = command.parse_args()
    if unknown := sorted(set(asked.targets) - set(TARGETS)):
        command.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(TARGETS)}")
    finish({"benchmark": "door_fuzz", **run(asked.quick, asked.targets, asked.cases, asked.seed)})


if __name__ == "__main__":
    main()
