"""The states of runs, which the server sends to parties and parties store.

The server sends them on each party's stream, when the stream begins and after each change: for each run with the
member on its roster, one of four constants and the number of rounds. So a party that was away when a run ended learns
it when it attends next. A party accepts only these constants and numbers, and only for runs that it has approved.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tertulia._disk import atomic_write
from tertulia.errors import FormatError, TertuliaError
from tertulia.runs.directory import Run

UNDER_WAY, STOPPED, FINISHED, ABANDONED = "under way", "stopped", "finished", "abandoned"
FILE = "ended.json"  # in a party's directory of a run
_STATES = (UNDER_WAY, STOPPED, FINISHED, ABANDONED)
_ID = re.compile(r"[0-9a-f]{16}")
_MOST_RUNS, _MOST_ROUNDS = 200, 10**8
_MOST_BYTES = 1 << 16  # of the states of that many runs
_FRESH = 0.5  # seconds for which states that were read are sent to all parties
_UNREADABLE = "what the server says of runs cannot be read"


class Ending(NamedTuple):
    """The state of a run and, unless it is under way, its number of rounds."""

    state: str
    round: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, for now or for good."""
        return self.state != UNDER_WAY


# --- at the server ----------------------------------------------------------------------------------------------------


class Endings:
    """The states of a federation's newest runs, for the members of their rosters."""

    def __init__(self, runs: Callable[[], Path], state: Callable[[str], str]) -> None:
        self._runs, self._state = runs, state
        self._lock = threading.Lock()
        self._rosters: dict[str, frozenset[str]] = {}  # of a run they never change
        self._read: dict[str, Ending] = {}
        self._read_at = -_FRESH

    def of(self, member: str) -> bytes:
        """Encode the states for a member; the bytes stay equal while nothing changes."""
        with self._lock:
            if time.monotonic() - self._read_at >= _FRESH:
                self._read, self._read_at = self._look(), time.monotonic()
            return to_bytes({run: one for run, one in self._read.items() if member in self._rosters[run]})

    def _look(self) -> dict[str, Ending]:
        found = [(path.stat().st_mtime_ns, path.parent) for path in self._runs().glob("*/run.json")]
        states = {}
        for _, directory in sorted(found)[-_MOST_RUNS:]:
            try:
                if directory.name not in self._rosters:
                    self._rosters[directory.name] = frozenset(Run.open(directory).parties)
                states[directory.name] = self._ending(directory)
            except TertuliaError:  # a damaged run is for the operator's commands to report
                continue
        return states

    def _ending(self, directory: Path) -> Ending:
        state = self._state(directory.name)
        rounds = [int(path.stem[7:]) for path in (directory / "server").glob(f"commit-{'[0-9]' * 8}.safetensors")]
        return Ending(state) if state == UNDER_WAY else Ending(state, max(rounds, default=0))


def to_bytes(endings: Mapping[str, Ending]) -> bytes:
    """Encode states for the wire."""
    return json.dumps({run: list(one) for run, one in sorted(endings.items())}).encode()


# --- at a party -------------------------------------------------------------------------------------------------------


def from_bytes(data: bytes) -> dict[str, Ending]:
    """Decode the states that a server sent; anything but constants and numbers raises `FormatError`."""
    try:
        if len(data) > _MOST_BYTES:
            raise FormatError(_UNREADABLE)
        facts = json.loads(data)
        if not isinstance(facts, dict) or len(facts) > _MOST_RUNS or not all(map(_ID.fullmatch, facts)):
            raise FormatError(_UNREADABLE)
        return {run: _ending(one) for run, one in facts.items()}
    except (ValueError, TypeError, RecursionError) as error:
        raise FormatError(_UNREADABLE) from error


def _ending(facts: object) -> Ending:
    if not isinstance(facts, list) or len(facts) != 2:
        raise FormatError(_UNREADABLE)
    state, round_ = facts
    if state not in _STATES or type(round_) is not int or not 0 <= round_ < _MOST_ROUNDS:
        raise FormatError(_UNREADABLE)
    return Ending(state, round_)


def keep_ending(directory: Path, ending: Ending) -> bool:
    """Store the state of a run in a party's directory; return whether it has changed."""
    if ending_or_none(directory) == ending:
        return False
    atomic_write(directory / FILE, json.dumps(list(ending)).encode(), durable=False)
    return True


def ending_or_none(directory: Path) -> Ending | None:
    """Return the state of a run that the server sent last, if any."""
    try:
        return _ending(json.loads((directory / FILE).read_bytes()))
    except (OSError, ValueError, RecursionError, FormatError):
        return None
