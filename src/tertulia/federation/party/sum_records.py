"""A party's durable record of masked sums: what it has masked at each place, and the one list that it has signed.

A record is on disk before the masked reply or the signature leaves. So after a crash the party repeats the same bytes,
and it never signs a second list for a place. Records of rounds that the server will not ask for again are dropped; the
party then refuses these rounds altogether.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write, private_directory, private_file, sync_directory
from tertulia.errors import FormatError, JournalError, PolicyRefusal
from tertulia.federation.secure.lists import SumList
from tertulia.federation.types import PartyId, Place

RULE = "one total per place"
_COMPACTED = 1000  # lines after which obsolete ones are removed


@dataclass(frozen=True)
class Masked:
    """One masked reply, by the random bytes that its masks and shares were made from."""

    step: str
    root: bytes  # drawn afresh for each reply
    digest: str  # of the reply
    counted: Place  # the reply that this one is a difference from
    differs: bool  # whether replies to the step are differences
    first: bool  # whether it is a first contribution, which is no difference
    contents: str  # the hash of the numbers before they were masked
    values: tuple[tuple[int, ...], ...] = ()  # of a step whose total stands: the numbers before the difference


@dataclass
class PlaceRecord:
    """What the party has done at one place."""

    replies: dict[tuple[str, int], Masked] = field(default_factory=dict)  # (body, attempt) -> reply
    signed: tuple[str, frozenset[PartyId]] | None = None  # body and survivors of the list that was signed
    attempt: int = -1  # the largest attempt so far


class SumRecords:
    """The records of one run, in a log of one JSON object per line."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self._path, self._durable = path, durable
        self._places: dict[Place, PlaceRecord] = {}
        self._counted: dict[str, Place] = {}  # step -> the last place whose list, with this party, was unmasked
        self._standing: dict[str, dict[Place, tuple[tuple[int, ...], ...]]] = {}  # step -> place -> numbers
        self._oldest = 0  # rounds before this one are refused
        self._lines = 0
        private_directory(path.parent)
        for line in _read(path):
            self._apply(line)
        _end_last_line(path)

    # --- queries ------------------------------------------------------------------------------------------------------

    def check(self, place: Place, body: str, attempt: int) -> None:
        """Raise `PolicyRefusal` unless this party may mask an answer to this body at this place and attempt."""
        self._check_round(place)
        known = self._places.get(place)
        if known is None:
            return
        if attempt < known.attempt:
            raise PolicyRefusal(RULE, f"place {place} has been asked with attempt {known.attempt}, after {attempt}")
        if known.signed is not None and known.signed[0] != body:
            raise PolicyRefusal(RULE, f"a list was signed for another question at place {place}")

    def reply_or_none(self, place: Place, body: str, attempt: int) -> Masked | None:
        """Return the record of a masked reply."""
        known = self._places.get(place)
        return None if known is None else known.replies.get((body, attempt))

    def check_repeat(self, place: Place, body: str, counted: Place, contents: str | None = None) -> None:
        """Raise `PolicyRefusal` if this party has answered this place with other numbers, at any attempt.

        Lists of two attempts may name the same survivors, so the difference of their totals would be that of one party.
        The other members may have signed a list that this party has not seen, so its own signature does not matter.
        """
        known = self._places.get(place)
        replies = [] if known is None else [reply for (asked, _), reply in known.replies.items() if asked == body]
        if any(reply.counted != counted for reply in replies):
            raise PolicyRefusal(RULE, f"place {place} was asked with another reply as the last that was added")
        if contents is not None and any(reply.contents != contents for reply in replies):
            raise PolicyRefusal(RULE, f"this party has answered place {place} with other numbers")

    def check_list(self, listed: SumList) -> None:
        """Raise `PolicyRefusal` if another list was signed for this place."""
        label = listed.label
        self.check(label.place, label.body, label.attempt)
        known = self._places.get(label.place)
        if known is not None and known.signed is not None and known.signed[1] != frozenset(listed.survivors):
            raise PolicyRefusal(RULE, f"a list with other survivors was signed for place {label.place}")

    def check_counted(self, step: str, counted: Place) -> None:
        """Raise `PolicyRefusal` if the server claims that a reply, which this party helped to unmask, is in no sum."""
        if counted < self._counted.get(step, counted):
            raise PolicyRefusal(RULE, "the server names an earlier reply than the one that was added last")

    def standing_or_none(self, step: str, counted: Place) -> tuple[tuple[int, ...], ...] | None:
        """Return the numbers of a step's reply that is in the total; None if this party has lost them."""
        return self._standing.get(step, {}).get(counted)

    def _check_round(self, place: Place) -> None:
        if place[0] < self._oldest:
            raise PolicyRefusal(RULE, f"round {place[0]} is over")

    # --- changes ------------------------------------------------------------------------------------------------------

    def add_reply(self, place: Place, body: str, attempt: int, reply: Masked) -> None:
        """Record a masked reply, before it leaves."""
        self._write(_masked_line(place, body, attempt, reply))

    def sign(self, listed: SumList) -> None:
        """Record the list that is about to be signed; a repeat is written once."""
        label = listed.label
        known = self._places.get(label.place)
        if known is None or known.signed is None or label.attempt > known.attempt:
            self._write(
                {"signed": label.place, "body": label.body, "attempt": label.attempt,
                 "survivors": sorted(listed.survivors)}
            )  # fmt: skip

    def count(self, step: str, place: Place) -> None:
        """Record that a reply to a step was unmasked as part of a total."""
        if self._counted.get(step) != place:
            self._write({"counted": step, "place": place})

    def forget_before(self, round_: int) -> None:
        """Drop the records of rounds before this one, which are refused from now on."""
        if round_ > self._oldest:
            self._oldest = round_
            self._places = {place: record for place, record in self._places.items() if place[0] >= round_}
            for step, values in self._standing.items():
                needed = self._counted.get(step)
                self._standing[step] = {p: one for p, one in values.items() if p[0] >= round_ or p == needed}
            if self._lines > _COMPACTED:
                self._compact()

    # --- the log ------------------------------------------------------------------------------------------------------

    def _write(self, line: dict[str, Any]) -> None:
        self._append([line])
        self._apply(line)

    def _append(self, lines: list[dict[str, Any]]) -> None:
        try:
            new = not self._path.exists()
            with private_file(self._path).open("ab") as file:
                for line in lines:
                    file.write(_seal(line))
                if self._durable:
                    file.flush()
                    os.fsync(file.fileno())
            if new and self._durable:
                sync_directory(self._path.parent)
        except OSError as error:
            raise JournalError(f"could not write {self._path} ({error.strerror}): free some space") from error

    def _apply(self, line: dict[str, Any]) -> None:
        self._lines += 1
        if "oldest" in line:
            self._oldest = int(line["oldest"])
        elif "standing" in line:
            values = tuple(tuple(map(int, part)) for part in line["values"])
            self._standing.setdefault(line["standing"], {})[_place(line["place"])] = values
        elif isinstance(line.get("counted"), str):
            self._counted[line["counted"]] = _place(line["place"])
        else:
            place = _place(line.get("masked") or line.get("signed"))
            record = self._places.setdefault(place, PlaceRecord())
            record.attempt = max(record.attempt, int(line["attempt"]))
            if "masked" in line:
                reply = _reply(line)
                record.replies[str(line["body"]), int(line["attempt"])] = reply
                if reply.values:
                    self._standing.setdefault(reply.step, {})[place] = reply.values
            else:
                record.signed = (str(line["body"]), frozenset(map(str, line["survivors"])))

    def _compact(self) -> None:
        lines: list[dict[str, Any]] = [{"oldest": self._oldest}]
        lines += [{"counted": step, "place": place} for step, place in self._counted.items()]
        for step, standing in self._standing.items():
            lines += [{"standing": step, "place": place, "values": values} for place, values in standing.items()]
        for place, record in self._places.items():
            for (body, attempt), reply in record.replies.items():
                lines.append(_masked_line(place, body, attempt, reply))
            if record.signed is not None:
                lines.append({"signed": place, "body": record.signed[0], "attempt": record.attempt,
                              "survivors": sorted(record.signed[1])})  # fmt: skip
        atomic_write(self._path, b"".join(map(_seal, lines)), durable=self._durable)
        self._lines = len(lines)


def _masked_line(place: Place, body: str, attempt: int, reply: Masked) -> dict[str, Any]:
    return {
        "masked": place, "body": body, "attempt": attempt, "step": reply.step, "root": reply.root.hex(),
        "digest": reply.digest, "counted": reply.counted, "differs": reply.differs, "first": reply.first,
        "contents": reply.contents, "values": reply.values,
    }  # fmt: skip


def _reply(line: dict[str, Any]) -> Masked:
    values = tuple(tuple(map(int, part)) for part in line["values"])
    root, counted = bytes.fromhex(line["root"]), _place(line["counted"])
    flags = bool(line["differs"]), bool(line["first"])
    return Masked(str(line["step"]), root, str(line["digest"]), counted, *flags, str(line["contents"]), values)


def _seal(line: dict[str, Any]) -> bytes:
    """Write a line with a checksum, so that one that was cut off by a crash is noticed."""
    text = json.dumps(line)
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]} {text}\n".encode()


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log. A crash can cut off the last line only, and what it records has not left."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"cannot read {path} ({error.strerror})") from error
    for number, line in enumerate(lines):
        if _is_whole(line):
            yield json.loads(line.partition(b" ")[2])
        elif number < len(lines) - 1 and line:
            raise FormatError(f"{path} is damaged in line {number + 1}: restore it from a backup")


def _is_whole(line: bytes) -> bool:
    checksum, _, text = line.partition(b" ")
    return hashlib.sha256(text).hexdigest()[:16].encode() == checksum


def _end_last_line(path: Path) -> None:
    """Remove a line that a crash has cut off, or end it, so that the next one does not continue it."""
    data = path.read_bytes() if path.exists() else b""
    last = data.rfind(b"\n") + 1
    if last < len(data):
        if _is_whole(data[last:]):
            with path.open("ab") as file:
                file.write(b"\n")
        else:
            os.truncate(path, last)


def _place(value: Any) -> Place:
    round_, ordinal = value
    return int(round_), int(ordinal)
