"""Cells: the smallest results of a benchmark, one model with its scores, stored under the hash of its configuration.

A cell is computed once. It is looked up in `benchmarks/results/applications`, which is committed, then in
`benchmarks/out/applications`. A missing cell is computed and stored in the latter, so that an interrupted run, or a new
machine, continues where the last one stopped. Delete a cell to measure it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common import OUT, say

KEPT = OUT / "applications"
COMMITTED = Path(__file__).resolve().parents[1] / "results" / "applications"
Configuration = Mapping[str, Any]
_computes = True
_used: dict[str, dict[str, dict[str, Any]]] = {}  # part -> hash -> cell, of this run


class NotKept(Exception):
    """A missing cell, in a run that computes none."""


def digest(configuration: Configuration) -> str:
    """Hash a configuration; the order of its keys does not matter."""
    return hashlib.blake2b(json.dumps(configuration, sort_keys=True).encode(), digest_size=8).hexdigest()


def compute_nothing() -> None:
    """Make a missing cell an error, `NotKept`, from now on."""
    global _computes
    _computes = False


def cell(part: str, configuration: Configuration, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the stored result of a configuration, or compute and store it."""
    whole = {"part": part, **configuration}
    name = digest(whole)
    file = KEPT / f"{name}.json"
    kept = _committed(part).get(name)
    if kept is None and file.exists():
        kept = json.loads(file.read_text(encoding="utf-8"))
    if kept is None and not _computes:
        raise NotKept(f"{part}: {_short(configuration)}")
    if kept is None:
        kept = {"configuration": whole, "found": compute()}
        write_atomically(file, kept)
        say(f"  {part} {_short(configuration)}: {_short(kept['found'])}")
    _used.setdefault(part, {})[name] = kept
    found: dict[str, Any] = kept["found"]
    return found


def keep(part: str, configuration: Configuration, result: Mapping[str, Any], publish: bool) -> None:
    """Write the result of a part with all its cells; with `publish`, to the committed folder."""
    whole = {"part": part, **configuration}
    cells = dict(sorted(_used.get(part, {}).items()))
    content = {"hash": digest(whole), "configuration": whole, "result": result, "cells": cells}
    file = (COMMITTED if publish else KEPT) / f"{part}.json"
    write_atomically(file, content, indent=1)
    say(f"wrote {file.name}: {len(cells)} cells, configuration {content['hash']}")


@cache
def _committed(part: str) -> dict[str, dict[str, Any]]:
    file = COMMITTED / f"{part}.json"
    cells: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"] if file.exists() else {}
    return cells


def write_atomically(file: Path, content: Mapping[str, Any], indent: int | None = None) -> None:
    """Write atomically, because a run may be stopped at any time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")
    draft.replace(file)


def _short(values: Mapping[str, Any]) -> str:
    """Format the last few values for the log; the first ones are the same in all cells."""
    last = list(values.items())[-4:]
    return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in last)[
        :200
    ]
