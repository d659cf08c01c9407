"""The server's journal: its commits on disk, which survive `kill -9`.

A commit holds the method's state, the number of the round and the history of metrics and bytes. The last two commits
are kept. If the newest is damaged, the run continues from the one before; parties keep their answers since then, so
nothing is lost and no noise is drawn twice.
"""

from __future__ import annotations

import json
from dataclasses import field, replace
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
    """The stored state at the end of a round."""

    round: int
    state: Any  # the method's own
    answered: dict[str, Any]  # party -> place of the last question it answered
    history: tuple[Any, ...]  # one dict per round: metrics, bytes by party and direction, seconds; on disk as JSON
    counted: dict[str, Any] = field(default_factory=dict)  # step -> party -> place of its last reply that a sum holds
    standing: dict[str, Any] = field(default_factory=dict)  # step -> total of a masked sum that stands (`Replies`)


class Journal:
    """The server's commits in one directory."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        directory.mkdir(parents=True, exist_ok=True)
        self._lines: list[tuple[Any, str]] = []  # rounds of the history, with their JSON

    def write(self, commit: Commit) -> None:
        """Store a commit, and delete those older than the one before it."""
        faults.point("server.before_commit")
        stored = encode(replace(commit, history=self._as_lines(commit.history)))
        atomic_write(self._path(commit.round), with_checksum(stored), durable=self.durable)
        faults.point("server.after_commit")
        for round_ in self.rounds()[:-_KEPT]:
            self._path(round_).unlink()

    def _as_lines(self, history: tuple[Any, ...]) -> tuple[str, ...]:
        """Encode each round as JSON, once, so that a commit does not take longer with every round."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1][0], zip(history, self._lines, strict=False)))
        new = [(facts, json.dumps(facts, default=_plain_number)) for facts in history[same:]]
        self._lines = self._lines[:same] + new
        return tuple(line for _, line in self._lines)

    def last(self) -> tuple[Commit | None, list[str]]:
        """Return the newest intact commit, and a warning for each damaged one that was skipped."""
        warnings = []
        for round_ in reversed(self.rounds()):
            try:
                sound = read_checked(self._path(round_))
            except FormatError as error:
                warnings.append(f"{error}; going on from the commit before it")
            else:
                return _commit(sound, self._path(round_)), warnings
        if len(warnings) >= _KEPT:  # with fewer, the run is so young that parties still have every answer
            raise FormatError("no sound commit is left: " + "; ".join(warnings))
        return None, warnings

    def rounds(self) -> list[int]:
        """Return the rounds whose commits are on disk, oldest first."""
        return sorted(int(path.stem[7:]) for path in self.directory.glob(f"commit-{'[0-9]' * 8}.safetensors"))

    def _path(self, round_: int) -> Path:
        return self.directory / f"commit-{round_:08d}.safetensors"


def _commit(data: bytes, path: Path) -> Commit:
    """Decode a commit and check its parts; the state belongs to the method."""
    try:
        commit = decode(data)
        if not isinstance(commit, Commit) or not (0 <= commit.round < _MOST_ROUNDS):
            raise FormatError("it is no commit")
        history = tuple(json.loads(facts) if isinstance(facts, str) else facts for facts in commit.history)
        places = dict[str, tuple[int, int]]
        if not fits(commit.answered, places) or not fits(commit.counted, dict[str, places]):
            raise FormatError("who answered what is not in it")
        if not fits(history, tuple[dict[str, Any], ...]):
            raise FormatError("its history is none")
    except (FormatError, ValueError, RecursionError) as error:
        raise FormatError(
            f"{path} does not hold a commit ({error}): restore it from a backup; if an earlier, unreleased "
            "version began the run, begin it again"
        ) from error
    return replace(commit, history=history)


def _plain_number(value: Any) -> Any:
    """Convert a NumPy number to one that JSON can write."""
    return np.asarray(value).tolist()
