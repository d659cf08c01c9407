"""Cells: each a measurement with one seed, in a file of `benchmarks/out`, so that a stopped run continues."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.common import say
from benchmarks.embedding_topics.corpora import CACHE
from tertulia._disk import atomic_write

Cell = dict[str, Any]


def cached(key: list[Any], make: Callable[[], Cell]) -> Cell:
    """Return a cell of an earlier run, or make it and store it."""
    path = CACHE / "cells" / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.json"
    if path.exists():
        found: Cell = json.loads(path.read_text())["cell"]
        return found
    began = time.perf_counter()
    cell = {name: value.item() if isinstance(value, np.generic) else value for name, value in make().items()}
    say(f"{key}: {cell} ({time.perf_counter() - began:.0f} s)")
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps({"key": key, "cell": cell}).encode())
    return cell


def stored(key: list[Any]) -> Cell | None:
    """Return a cell of an earlier run, if there is one."""
    path = CACHE / "cells" / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.json"
    return json.loads(path.read_text())["cell"] if path.exists() else None


def summary(cells: Iterable[Mapping[str, Any]]) -> Cell:
    """Return means of numbers, their standard deviation where there are several, and how many runs there were."""
    several = list(cells)
    out: Cell = {"runs": len(several)}
    for name in several[0] if several else ():
        values = [cell[name] for cell in several if isinstance(cell.get(name), int | float)]
        if values:
            digits = 1 if name in ("live", "seconds") else 3
            out[name] = round(float(np.mean(values)), digits)
            if len(values) > 1:
                out[f"{name}_sd"] = round(float(np.std(values, ddof=1)), digits)
    return out
