"""What survives `kill -9` at the server: its commits.

A commit holds the method's state, the round's number and the history of metrics and bytes. The last two commits are
kept: should the newest be damaged on disk, the run goes on from the one before, and parties keep their answers since
then, so that nothing is lost and no noise is drawn twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    history: tuple[Any, ...]  # one dict per round: metrics, bytes by party and direction, seconds


class Journal:
    """The server's commits in one directory."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, commit: Commit) -> None:
        """Store a commit and forget those older than the one before it."""
        faults.point("server.before_commit")
        atomic_write(self._path(commit.round), with_checksum(encode(commit)), durable=self.durable)
        faults.point("server.after_commit")
        for round_ in self.rounds()[:-_KEPT]:
            self._path(round_).unlink()

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
        if not fits(commit.answered, dict[str, tuple[int, int]]) or not fits(
            commit.history, tuple[dict[str, Any], ...]
        ):
            raise FormatError("who answered what is not in it")
    except FormatError as error:
        raise FormatError(f"{path} does not hold a commit ({error}): restore it from a backup") from error
    return commit
