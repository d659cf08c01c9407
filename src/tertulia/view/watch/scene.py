"""The shape of what is seen. Names and words are other people's: they are made plain here, and cut.

A look has: title, run, method, state ("waiting", "under way", "finished", "stopped"), text, again (the command to go
on), round, rounds, left (seconds), doing, verdict {level, text} or None, parties [{name, state, why, phase, seconds,
up, down, budgets}], scores [[round, perplexity]], own {party: [[round, perplexity]]}, levels {name: perplexity}, gone
[[round, party]], topics [{number, share, words: [[word, share, is new]]}], releases [{at, party, what, bytes, level,
round}], sizes (what bytes of releases mean).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tertulia._plain import plain

Look = dict[str, Any]
PHASES = {  # steps -> what a party does meanwhile
    "propose_words": "words",
    "count_documents": "words",
    "train_local": "training",
    "train_locally": "training",
    "train_alone": "training alone",
    "train_whole": "training",
    "count_together": "counting together",
    "count_reports": "counting reports",
    "local_sampling": "sampling",
    "expect": "counting",
    "score": "scoring",
    "validate": "scoring",
    "sum_validation": "scoring",
    "choose": "choosing a model",
    "keep_composed": "keeping its model",
    "measure": "measuring",
}
_LONGEST = 60  # letters of a name or a word


def short(text: object, most: int = _LONGEST) -> str:
    """Other people's text, cut and made plain."""
    return plain(str(text), most)


def phase_of(step: str) -> str:
    """What a step is called for people."""
    return PHASES.get(step, short(step.replace("_", " ")))


def number_or_none(value: Any) -> float | None:
    """A number that JSON can hold."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def new_look(title: str, **facts: Any) -> Look:
    """A look with all its parts, empty but for those that are given."""
    empty: Look = {
        "title": short(title), "run": "", "method": "", "state": "waiting", "text": "", "again": "", "round": 0,
        "rounds": 0, "left": None, "doing": "", "verdict": None, "parties": [], "scores": [], "own": {}, "levels": {},
        "gone": [], "topics": [], "releases": [], "sizes": "as it travelled",
    }  # fmt: skip
    return {**empty, **facts}


def waiting(directory: Path) -> Look:
    """Before there is a run."""
    return new_look(directory.name, text="no run has begun here yet")


def new_party(name: str, **facts: Any) -> dict[str, Any]:
    """A party's card."""
    empty: dict[str, Any] = {
        "state": "joining",
        "why": "",
        "phase": "",
        "seconds": None,
        "up": 0,
        "down": 0,
        "budgets": [],
    }
    return {"name": short(name), **empty, **facts}


def time_left(history: Sequence[Mapping[str, Any]], rounds: int) -> float | None:
    """Seconds until the end, if the next rounds take as long as the last three."""
    last = [float(facts["seconds"]) for facts in history[-3:] if "seconds" in facts]
    if not last or rounds <= len(history):
        return None
    return sum(last) / len(last) * (rounds - len(history))
