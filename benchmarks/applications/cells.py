"""Cells: the smallest results of a benchmark, one model with its scores, kept under the hash of their configuration.

A cell is computed once. It is looked for in `benchmarks/results/applications`, which is committed, then in
`benchmarks/out/applications`; what is in neither is computed and put into the latter, so that a run that was stopped,
or a fresh machine, goes on where the last one stopped. Delete a cell to measure it anew.
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
    """A cell that is not on disk, in a run that computes none."""


def digest(configuration: Configuration) -> str:
    """The name of a configuration: equal ones have equal names, whatever the order of their keys."""
    return hashlib.blake2b(json.dumps(configuration, sort_keys=True).encode(), digest_size=8).hexdigest()


def compute_nothing() -> None:
    """From now on let a cell that is not on disk be an error, `NotKept`."""
    global _computes
    _computes = False


def cell(part: str, configuration: Configuration, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was found for a configuration of a part, or what `compute` finds now."""
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
        _write(file, kept)
        say(f"  {part} {_short(configuration)}: {_short(kept['found'])}")
    _used.setdefault(part, {})[name] = kept
    found: dict[str, Any] = kept["found"]
    return found


def keep(part: str, configuration: Configuration, result: Mapping[str, Any], publish: bool) -> None:
    """Write a part's result with all cells that it was made from; `publish`: to where it is to be committed."""
    whole = {"part": part, **configuration}
    cells = dict(sorted(_used.get(part, {}).items()))
    content = {"hash": digest(whole), "configuration": whole, "result": result, "cells": cells}
    file = (COMMITTED if publish else KEPT) / f"{part}.json"
    _write(file, content, indent=1)
    say(f"wrote {file.name}: {len(cells)} cells, configuration {content['hash']}")


@cache
def _committed(part: str) -> dict[str, dict[str, Any]]:
    file = COMMITTED / f"{part}.json"
    cells: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"] if file.exists() else {}
    return cells


def _write(file: Path, content: Mapping[str, Any], indent: int | None = None) -> None:
    """Whole or not at all: a run may be stopped at any time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(content, indent=indent) + "\n", encoding="utf-8")
    draft.replace(file)


def _short(values: Mapping[str, Any]) -> str:
    """The last few, for humans: what comes first is the same in all cells."""
    last = list(values.items())[-4:]
    return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in last)[
        :200
    ]
