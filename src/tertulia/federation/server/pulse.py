"""What the server is asking right now, in a small file, for whoever watches the run: between commits nothing else says.

It is written before a question and after its answers, a few times a second at most. Losing it loses nothing.
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
_PAUSE = 0.2  # seconds between two writings: methods with thousands of tiny steps must not wait for this


class Pulse:
    """The file of one run."""

    def __init__(self, directory: Path, *, beats: bool = True) -> None:
        self._path, self._beats = directory / FILE, beats
        self._facts: dict[str, Any] = {"silent": {}}
        self._last = -_PAUSE
        self._asked = 0.0

    def ask(self, round_: int, step: str, parties: Sequence[str]) -> None:
        """A question goes out."""
        self._asked = time.time()
        self._facts |= {"round": round_, "step": step, "asked": list(parties), "since": self._asked, "answered": None}
        self._write()

    def hear(self, answered: Sequence[str], why: Mapping[str, str]) -> None:
        """Answers have come from these; why not from the others, as far as they said."""
        silent = {party: why.get(party, "") for party in self._facts["asked"] if party not in answered}
        self._facts |= {"answered": list(answered), "seconds": time.time() - self._asked}
        self._write(force=silent != self._facts["silent"], silent=silent)

    def _write(self, *, force: bool = False, **facts: Any) -> None:
        self._facts |= facts
        now = time.monotonic()
        if self._beats and (force or now - self._last >= _PAUSE):
            self._last = now
            with suppress(JournalError):  # a full disk stops nobody here
                atomic_write(self._path, json.dumps(self._facts).encode(), durable=False)


def pulse_or_none(directory: Path) -> dict[str, Any] | None:
    """What a run's server last said of itself; None if it said nothing yet."""
    try:
        facts = json.loads((directory / FILE).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("asked"), list) else None
