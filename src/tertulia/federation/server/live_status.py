"""The live status of a run: a small file with the question that is open now, for `watch` and pages between commits.

It is written before a question and after its answers, at most a few times per second. The run does not depend on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia.errors import JournalError

FILE = "now.json"
_PAUSE = 0.2  # seconds between two writes: methods with thousands of tiny steps must not wait for this


class LiveStatus:
    """The status file of one run."""

    def __init__(self, directory: Path, *, enabled: bool = True) -> None:
        self._path, self._enabled = directory / FILE, enabled
        self._facts: dict[str, Any] = {"silent": {}}
        self._last = -_PAUSE
        self._asked = 0.0

    def ask(self, round_: int, step: str, parties: Sequence[str]) -> None:
        """Record that a question is sent."""
        self._asked = time.time()
        self._facts |= {"round": round_, "step": step, "asked": list(parties), "since": self._asked, "answered": None}
        self._write()

    def hear(self, answered: Sequence[str], why: Mapping[str, str]) -> None:
        """Record the parties that have answered, and the reasons of the others, as far as known."""
        silent = {party: why.get(party, "") for party in self._facts["asked"] if party not in answered}
        self._facts |= {"answered": list(answered), "seconds": time.time() - self._asked}
        self._write(force=silent != self._facts["silent"], silent=silent)

    def _write(self, *, force: bool = False, **facts: Any) -> None:
        self._facts |= facts
        now = time.monotonic()
        if self._enabled and (force or now - self._last >= _PAUSE):
            self._last = now
            with suppress(JournalError):  # a full disk must not stop the run here
                atomic_write(self._path, json.dumps(self._facts).encode(), durable=False)


def live_status_or_none(directory: Path) -> dict[str, Any] | None:
    """Read the status of a run; None if there is none yet."""
    try:
        facts = json.loads((directory / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("asked"), list) else None
