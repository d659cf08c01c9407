"""Cells: the scores of one call of a measure with one seed, each a file in `benchmarks/out/book`.

A file is named by the hash of its configuration and written atomically, so a run that was killed continues where it
was. A file that is half-written, or holds another configuration, is named and measured again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.applications.cells import digest, write_atomically
from benchmarks.common import OUT, say

KEPT = OUT / "book"
ROOT = Path(__file__).parents[2]
DIGITS = 7  # significant ones that are stored


def measure(name: str, arguments: Mapping[str, Any], seed: int, *, code: str = "") -> dict[str, Any]:
    """Return the cell of a call, from disk or measured now: its scores, and where, when and how long it took.

    With `code`, the hash of the sources, a cell of other sources does not count.
    """
    configuration = json.loads(json.dumps({"measure": name, "seed": seed, "arguments": arguments, "code": code}))
    file = KEPT / f"{digest(configuration)}.json"
    kept = read_or_none(file, configuration)
    if kept is not None:
        return kept
    logging.getLogger("tertulia.party").setLevel(logging.ERROR)  # word lists of experiments are made of training words
    module, _, function = name.partition(":")
    call = getattr(import_module(module), function)
    started = time.process_time()
    with repeatable(digest(configuration | {"code": ""})):
        scores = {key: float(f"{value:.{DIGITS}g}") for key, value in call(seed=seed, **arguments).items()}
    cell = {"configuration": configuration, "scores": scores, "cpu_seconds": round(time.process_time() - started, 2)}
    cell |= provenance()
    write_atomically(file, cell)
    say(f"  {name.partition(':')[2]} seed {seed} {_short(arguments)}: {cell['cpu_seconds']:.1f} s")
    return cell


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """Let the secret keys of simulated parties follow from a name, so that noise is the same in each measurement."""
    drawn = itertools.count()

    def token_bytes(size: int | None = None) -> bytes:
        return hashlib.shake_256(f"{name}/{next(drawn)}".encode()).digest(size or 32)

    with mock.patch("secrets.token_bytes", token_bytes):
        yield


def read_or_none(file: Path, configuration: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read a cell; none if it is missing, half-written or of another configuration, which is reported."""
    if not file.exists():
        return None
    try:
        cell: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        scores = cell["scores"]
        complete = all(isinstance(value, (int, float)) for value in scores.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        complete = False
    if not complete:
        say(f"{file.name} in {KEPT} is half-written or no cell: it is measured again")
        return None
    if cell.get("configuration") != configuration:
        say(f"{file.name} in {KEPT} holds the result of another configuration: it is measured again")
        return None
    return cell


@cache
def provenance() -> dict[str, Any]:
    """Return commit, date and machine of a measurement."""
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "commit": done.stdout.strip() or "unknown",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
    }


@cache
def machine() -> dict[str, Any]:
    """Describe what decides whether numbers repeat to the last digits."""
    import numpy as np

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


@cache
def code_hash(measure: str) -> str:
    """Hash the sources of the package and of a measure: a hint where to look, no proof that a result is stale."""
    subject = measure.partition(":")[0].rpartition(".")[2]
    files = [*sorted((ROOT / "src" / "tertulia").rglob("*.py")), Path(__file__)]
    files += [ROOT / f"benchmarks/book/measures/{subject}.py"]
    files += sorted((ROOT / "benchmarks" / subject).rglob("*.py"))
    hashed = hashlib.blake2b(digest_size=6)
    for file in files:
        if file.is_file():
            hashed.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return hashed.hexdigest()


def _short(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in arguments.items())[:120]


def forget(code: str) -> None:
    """Delete the cells that were measured under this mark, so that they are measured again the next time."""
    for file in KEPT.glob("*.json"):
        try:
            if json.loads(file.read_text(encoding="utf-8"))["configuration"]["code"] == code:
                file.unlink()
        except (ValueError, KeyError, TypeError):
            continue
