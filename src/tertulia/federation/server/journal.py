"""What survives `kill -9` at the server: its commits.

A commit holds the method's state, the round's number and the history of metrics and bytes. The last two commits are
kept: should the newest be damaged on disk, the run goes on from the one before, and parties keep their answers since
then, so that nothing is lost and no noise is drawn twice.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._disk import atomic_write, read_checked, with_checksum
from tertulia._kinds import fits
from tertulia.errors import FormatError
from tertulia.federation import faults
from tertulia.federation.codec import decode, encode
from tertulia.federation.types import message

_KEPT = 2  # commits on disk
_MOST_ROUNDS = 10**8  # as file names have eight digits


@message
class Commit:
    """The end of a round as it is stored."""

    round: int
    state: Any  # the method's own
    answered: dict[str, Any]  # party -> place of the last question it answered
    history: tuple[Any, ...]  # one dict per round: metrics, bytes by party and direction, seconds; on disk as JSON


class Journal:
    """The server's commits in one directory."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        directory.mkdir(parents=True, exist_ok=True)
        self._lines: list[tuple[Any, str]] = []  # rounds of the history, as they are and as they are stored

    def write(self, commit: Commit) -> None:
        """Store a commit and forget those older than the one before it."""
        faults.point("server.before_commit")
        stored = encode(replace(commit, history=self._as_lines(commit.history)))
        atomic_write(self._path(commit.round), with_checksum(stored), durable=self.durable)
        faults.point("server.after_commit")
        for round_ in self.rounds()[:-_KEPT]:
            self._path(round_).unlink()

    def _as_lines(self, history: tuple[Any, ...]) -> tuple[str, ...]:
        """Each round as JSON, which is made once: a commit must not take longer the more rounds there were."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1][0], zip(history, self._lines, strict=False)))
        new = [(facts, json.dumps(facts, default=_plain_number)) for facts in history[same:]]
        self._lines = self._lines[:same] + new
        return tuple(line for _, line in self._lines)

    def last(self) -> tuple[Commit | None, list[str]]:
        """The newest sound commit, and a warning for each damaged one that was passed over."""
        warnings = []
        for round_ in reversed(self.rounds()):
            try:
                sound = read_checked(self._path(round_))
            except FormatError as error:
                warnings.append(f"{error}; going on from the commit before it")
            else:
                return _commit(sound, self._path(round_)), warnings
        if len(warnings) >= _KEPT:  # with fewer, the run is so young that parties still hold every answer
            raise FormatError("no sound commit is left: " + "; ".join(warnings))
        return None, warnings

    def rounds(self) -> list[int]:
        """The rounds whose commits are on disk, oldest first."""
        return sorted(int(path.stem[7:]) for path in self.directory.glob(f"commit-{'[0-9]' * 8}.safetensors"))

    def _path(self, round_: int) -> Path:
        return self.directory / f"commit-{round_:08d}.safetensors"


def _commit(data: bytes, path: Path) -> Commit:
    """A commit whose parts are what they should be; the state is the method's own."""
    try:
        commit = decode(data)
        if not isinstance(commit, Commit) or not (0 <= commit.round < _MOST_ROUNDS):
            raise FormatError("it is no commit")
        history = tuple(json.loads(facts) if isinstance(facts, str) else facts for facts in commit.history)
        if not fits(commit.answered, dict[str, tuple[int, int]]) or not fits(history, tuple[dict[str, Any], ...]):
            raise FormatError("who answered what is not in it")
    except (FormatError, ValueError, RecursionError) as error:
        raise FormatError(
            f"{path} does not hold a commit ({error}): restore it from a backup; if an earlier version began the run, "
            f"`tertulia upgrade {path.parents[1]}` says what remains of it"
        ) from error
    return replace(commit, history=history)


def _plain_number(value: Any) -> Any:
    """What numpy calls a number, as JSON does."""
    return np.asarray(value).tolist()
