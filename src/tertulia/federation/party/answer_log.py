"""A party's log of answers: its replies and the state after each, one atomic file per answer.

An answer and the state after it are stored together, so that after `kill -9` the party has either both or neither. A
repeated question gets the stored bytes: noise is never drawn twice.

Some answers need not survive a crash: they cost nothing, in methods with thousands of tiny steps. These stay in memory
until the next durable commit. The log keeps the last one and the one before, to which the party returns if the last
came too late and did not count.

Answers are stored packed (`federation.packing`), which saves most of the disk space. New answers overwrite the files of
old ones, but only after the rename of these files is on disk: after a power failure, no old name may show new contents.

A simulation in one process and in a temporary directory writes no files: no other process will ever read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._disk import atomic_write, private_directory, read_checked, read_lines, with_checksum, write_line
from tertulia._kinds import check_fields
from tertulia.errors import FormatError
from tertulia.federation import faults
from tertulia.federation.codec import decode, encode
from tertulia.federation.messages import BEFORE_ALL, Question
from tertulia.federation.types import Place

TRAVELLED = "travelled.log"  # one line for each answer: its packed size
AnswerSizes = dict[tuple[str, str], int]  # (place in the run, hash of the question) -> bytes
_DIGIT = "[0-9]"
_SPARE = ".spare"
_MOST_SPARE = 2


class _Stored:
    """The fields of a file."""

    hash: str
    state_at: tuple[int, int]
    answer: Array  # uint8
    state: Any


@dataclass(frozen=True)
class Entry:
    """One answered question."""

    place: Place
    hash: str
    answer: bytes
    state_at: Place  # the answer whose file holds the state: this one, unless the step did not change the state


class AnswerLog:
    """The log of answers in a party's directory, oldest first."""

    def __init__(self, directory: Path, *, durable: bool = True, on_disk: bool = True) -> None:
        self.directory = directory
        self.durable = durable
        self._memory: dict[Place, tuple[Entry, Any]] | None = None if on_disk else {}  # answers, in place of files
        private_directory(directory)
        self._stored: dict[Place, Place] = {}  # place -> where its state is
        for path in sorted(directory.glob(f"{_DIGIT * 8}-{_DIGIT * 6}.safetensors")):
            round_, ordinal = path.stem.split("-")
            place = (int(round_), int(ordinal))
            self._stored[place] = self._read(place)[0].state_at
        for path in directory.glob(f"*{_SPARE}"):  # of an earlier process
            path.unlink()
        self._retired: list[Path] = []  # files that are no longer needed, whose rename may not be on disk yet
        self._spare: list[Path] = []  # the same, with the rename on disk: they can be overwritten
        self._latest: Entry | None = None
        self._state: Any = None
        self._before: tuple[Entry, Any] | None = None  # the answer before the last, and the state after it
        self._recall()

    @property
    def state(self) -> Any:
        """The party's state after its last answer; None for a new party."""
        return self._state

    @property
    def latest(self) -> Place:
        """The place of the last answer."""
        return self._latest.place if self._latest else BEFORE_ALL

    def find_or_none(self, place: Place, hash_: str) -> bytes | None:
        """Return the stored answer to exactly this question, if there is one."""
        entry = self._latest
        if entry is None or entry.place != place:
            entry = self._read(place)[0] if place in self._stored else None
        return entry.answer if entry and entry.hash == hash_ else None

    def add(self, place: Place, hash_: str, state: Any, answer: bytes, *, durable: bool) -> None:
        """Store an answer and the state after it, before the answer is sent."""
        same = state is self._state and self._latest is not None and self._latest.state_at in self._stored
        self._before = (self._latest, self._state) if self._latest else None
        self._latest = Entry(place, hash_, answer, self._latest.state_at if same and self._latest else place)
        self._state = state
        if durable:
            self.flush()

    def flush(self) -> None:
        """Make the last answer durable."""
        entry = self._latest
        if entry is None or entry.place in self._stored:
            return
        if self._memory is not None:
            self._memory[entry.place], self._stored[entry.place] = (entry, self._state), entry.state_at
            return
        stored = {
            "hash": entry.hash,
            "state_at": entry.state_at,
            "answer": np.frombuffer(entry.answer, dtype=np.uint8),
            "state": self._state if entry.state_at == entry.place else None,
        }
        faults.point("party.before_save")
        over = self._spare.pop() if self._spare else None
        atomic_write(self._path(entry.place), with_checksum(encode(stored)), durable=self.durable, over=over)
        faults.point("party.after_save")
        self._stored[entry.place] = entry.state_at
        self._spare, self._retired = self._spare + self._retired, []  # the directory is on disk

    def forget_after(self, place: Place) -> None:
        """Void the answers after `place`: the server did not get them, or asks something else now."""
        if self.latest <= place:
            return
        self._drop([late for late in self._stored if late > place])
        before, self._before = self._before, None
        if before is None or before[0].place > place:
            self._recall()
            return
        self._latest, self._state = before
        if self._latest.state_at not in self._stored:
            self._latest = replace(self._latest, state_at=self._latest.place)

    def forget_before(self, round_: int) -> None:
        """Drop answers to earlier rounds, except the last, which later states may refer to."""
        old = [place for place in self._stored if place[0] < round_][:-1]
        needed = {state_at for place, state_at in self._stored.items() if place not in old}
        self._drop([place for place in old if place not in needed])

    def _drop(self, places: list[Place]) -> None:
        for place in reversed(places):  # newest first: a crash in between leaves no gap
            path = self._path(place)
            if self._memory is not None:
                del self._memory[place]
            elif self.durable and len(self._spare) + len(self._retired) < _MOST_SPARE:
                self._retired.append(path.replace(path.with_suffix(_SPARE)))
            else:
                path.unlink()
            del self._stored[place]

    def _recall(self) -> None:
        """Load the newest stored answer as the latest."""
        self._latest, self._state, self._before = None, None, None
        if self._stored:
            self._latest, self._state = self._read(max(self._stored))
            if self._latest.state_at != self._latest.place:
                self._state = self._read(self._latest.state_at)[1]

    def _read(self, place: Place) -> tuple[Entry, Any]:
        if self._memory is not None:
            return self._memory[place]
        stored = decode(read_checked(self._path(place)))
        if not isinstance(stored, dict) or stored.keys() != _Stored.__annotations__.keys():
            raise FormatError(f"{self._path(place)} does not hold an answer: restore it from a backup")
        check_fields(_Stored, stored)
        answer, state_at = stored["answer"], stored["state_at"]
        if getattr(answer, "dtype", None) != np.uint8 or not (BEFORE_ALL < state_at <= place):
            raise FormatError(f"{self._path(place)} does not hold an answer: restore it from a backup")
        return Entry(place, stored["hash"], answer.tobytes(), state_at), stored["state"]

    def _path(self, place: Place) -> Path:
        return self.directory / f"{place[0]:08d}-{place[1]:06d}.safetensors"


def note_answer_size(directory: Path, question: Question, size: int, *, keep: bool) -> None:
    """Log the packed size of an answer before it is sent, unless the directory is temporary."""
    if keep:
        place = f"{question.place[0]}.{question.place[1]}"
        write_line(directory / TRAVELLED, "info", question.hash, place=place, bytes=size)


def answer_sizes(directory: Path) -> AnswerSizes:
    """Return the packed sizes of a run's answers; none for a temporary run, or one of an earlier version."""
    return {
        (str(line["place"]), str(line["text"])): int(line["bytes"])
        for line in read_lines(directory / TRAVELLED)
        if isinstance(line.get("bytes"), int) and "place" in line
    }
