"""The fields of a snapshot. Names and words come from other people: they are made plain here, and cut.

A snapshot has: title, run, method, state ("waiting", "under way", "finished", "stopped", "abandoned"), text, again (the
command to go on), round, rounds, left (seconds), doing, verdict {level, text} or None, parties [{name, state, why,
phase, seconds, up, down, budgets, took_part (in which rounds, where it missed some), missed_many}], scores [[round,
perplexity]], own {party: [[round, perplexity]]}, levels {name: perplexity}, gone [[round, party]], topics [{number,
share, words: [[word, share, is new]]}], releases [{at, party, what, bytes, level, round}], sizes (what bytes of
releases mean). The level of a release is clear, masked, members, noise or free.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tertulia._plain import plain

Snapshot = dict[str, Any]
_LONGEST = 60  # letters of a name or a word


def short(text: object, most: int = _LONGEST) -> str:
    """Make other people's text plain, and cut it."""
    return plain(str(text), most)


def phase_of(doing: str) -> str:
    """Shorten what a step declares that a person reads (`@step(doing=...)`)."""
    return short(doing)


def number_or_none(value: Any) -> float | None:
    """Return a finite number as a float; None for anything else."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def new_snapshot(title: str, **facts: Any) -> Snapshot:
    """Return a snapshot with all fields, empty but for the given ones."""
    empty: Snapshot = {
        "title": short(title), "run": "", "method": "", "state": "waiting", "text": "", "again": "", "round": 0,
        "rounds": 0, "left": None, "doing": "", "verdict": None, "parties": [], "scores": [], "own": {}, "levels": {},
        "gone": [], "topics": [], "releases": [], "sizes": "as it travelled",
    }  # fmt: skip
    return {**empty, **facts}


def waiting(directory: Path) -> Snapshot:
    """Return the snapshot of a directory without a run."""
    return new_snapshot(directory.name, text="no run has begun here yet")


def new_party(name: str, **facts: Any) -> dict[str, Any]:
    """Return the fields of one party, empty but for the given ones."""
    empty: dict[str, Any] = {
        "state": "joining",
        "why": "",
        "phase": "",
        "seconds": None,
        "up": 0,
        "down": 0,
        "budgets": [],
        "took_part": "",
        "missed_many": False,
    }
    return {"name": short(name), **empty, **facts}


def time_left(history: Sequence[Mapping[str, Any]], rounds: int) -> float | None:
    """Estimate the seconds until the end from the last three rounds."""
    last = [float(facts["seconds"]) for facts in history[-3:] if "seconds" in facts]
    if not last or rounds <= len(history):
        return None
    return sum(last) / len(last) * (rounds - len(history))
