"""Cells of the benchmark: each is computed once, with its CPU seconds, and read from a file afterwards."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import OUT, say, time_cpu
from tertulia._disk import atomic_write

if (_TESTS := str(Path(__file__).resolve().parents[2] / "tests")) not in sys.path:
    sys.path.append(_TESTS)  # the attacks are the tests' helpers

SPENT: list[float] = []  # CPU seconds of the cells that were used, also of those that an earlier run has computed


def helper(name: str) -> Any:
    """Import a module of the tests' helpers."""
    return importlib.import_module(f"helpers.{name}")


def cell(name: str, work: Callable[[], Any]) -> Any:
    """Return a finished cell, or compute and store it."""
    path = OUT / "audits" / f"{name}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_bytes())
    else:
        cpu, value = time_cpu(work)
        found = {"value": value, "cpu_s": round(cpu, 2)}
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, json.dumps(found).encode())
        say(f"{name}: {value if not isinstance(value, list) or len(value) < 10 else '...'}")
    SPENT.append(found["cpu_s"])
    return found["value"]
