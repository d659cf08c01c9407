"""Who is connected, what each party is asked now, and what it has answered: the part of the gate without a network.

One lock for all: what is done under it takes microseconds. A party has at most one open question and one answer, so a
slow one costs the server no more memory than that.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from tertulia.errors import FormatError
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.messages import Answer
from tertulia.federation.types import PartyId

_PATIENCE = 5  # streams that may end in nonsense, over one question
_NONSENSE = "it sent again and again what no party sends"


class Stream:
    """One connection of a party: what it is to be sent next, and whether it is over."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next: tuple[int, bytes] | None = None  # the newest alone: an older one is past its time
        self.ended = False
        self.reason: str | None = None  # why the server has ended it

    def send(self, question: tuple[int, bytes]) -> None:
        """Have a question sent, in place of one that still waits."""
        with self._changed:
            self._next = question
            self._changed.notify()

    def end(self, reason: str | None = None) -> None:
        """It is over, or should be."""
        with self._changed:
            if not self.ended:
                self.ended, self.reason = True, reason
            self._next = None
            self._changed.notify()

    def next_or_none(self, patience: float) -> tuple[int, bytes] | None:
        """What is to be sent now; None when nothing came for so long, or the stream is over."""
        with self._changed:
            if self._next is None and not self.ended:
                self._changed.wait(patience)
            question, self._next = self._next, None
            return question


class Seat:
    """What is known of one party."""

    def __init__(self, since: float) -> None:
        self.stream: Stream | None = None
        self.connected_at = 0.0  # by the clock on the wall
        self.absent_since = since
        self.question: tuple[int, bytes] | None = None
        self.answer: bytes | None = None
        self.breaches = 0
        self.answered = 0  # questions

    @property
    def wanted(self) -> int | None:
        """The number of the open question."""
        question = self.question
        return None if question is None or self.answer is not None else question[0]


class Seats:
    """All parties' seats."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._seats: dict[PartyId, Seat] = {}
        self._opened = time.monotonic()

    def seat(self, party: PartyId) -> Seat:
        """A party's seat, connected or not."""
        with self._changed:
            return self._seat(party)

    def _seat(self, party: PartyId) -> Seat:
        if party not in self._seats:
            self._seats[party] = Seat(self._opened)
        return self._seats[party]

    @property
    def connected(self) -> dict[PartyId, float]:
        """Who is there now, and since when."""
        with self._changed:
            return {name: seat.connected_at for name, seat in self._seats.items() if seat.stream is not None}

    def sit(self, party: PartyId, stream: Stream, reason: str) -> None:
        """A party has connected: the newest stream is its own, an older one ends, and its open question is sent."""
        with self._changed:
            seat = self._seat(party)
            older, seat.stream, seat.connected_at = seat.stream, stream, time.time()
            if seat.wanted is not None and seat.question is not None:
                stream.send(seat.question)
            self._changed.notify_all()
        if older is not None:
            older.end(reason)

    def rise(self, party: PartyId, stream: Stream) -> bool:
        """A stream is over; whether the party has gone with it."""
        stream.end()
        with self._changed:
            seat = self._seat(party)
            if seat.stream is not stream:
                return False
            seat.stream, seat.absent_since = None, time.monotonic()
            self._changed.notify_all()
            return True

    def take(self, party: PartyId, serial: int, answer: bytes) -> None:
        """Note an answer; one to an earlier question is dropped."""
        with self._changed:
            seat = self._seat(party)
            if seat.wanted == serial:
                seat.answer, seat.breaches = answer, 0
                seat.answered += 1
                self._changed.notify_all()

    def breach(self, party: PartyId) -> None:
        """Note that a stream ended in nonsense; a party that does no better has failed."""
        with self._changed:
            seat = self._seat(party)
            seat.breaches += 1
            if seat.breaches > _PATIENCE:
                self._give_up(seat, _NONSENSE)

    def give_up(self, party: PartyId, reason: str) -> None:
        """Answer a party's open question for it: it has failed."""
        with self._changed:
            self._give_up(self._seat(party), reason)

    def _give_up(self, seat: Seat, reason: str) -> None:
        if seat.wanted is not None:
            seat.answer, seat.breaches = encode(Answer("failed", reason, None)), 0
            self._changed.notify_all()

    def ask(self, frames: Mapping[PartyId, bytes], deadline: float | None, absent_after: float) -> dict[PartyId, bytes]:
        """Ask all at once; return what is answered in time by those who are there, or come back in time."""
        with self._changed:
            asked = {party: self._seat(party) for party in frames}
            for party, seat in asked.items():
                seat.question, seat.answer = (secrets.randbits(64), frames[party]), None
                if seat.stream is not None:
                    seat.stream.send(seat.question)
            while (left := _patience(asked.values(), deadline, absent_after, time.monotonic())) > 0:
                self._changed.wait(None if left == _FOREVER else left)
            answers = {party: seat.answer for party, seat in asked.items() if seat.answer is not None}
            for seat in asked.values():
                seat.question = seat.answer = None
            return answers


_FOREVER = float("inf")


def _patience(seats: Collection[Seat], deadline: float | None, absent_after: float, now: float) -> float:
    """Seconds until the next look: at a deadline, at somebody's absence; 0 if there is nobody to wait for.

    Who is away too long is not waited for, and those who are there still are.
    """
    ends = [
        _FOREVER if seat.stream is not None else seat.absent_since + absent_after
        for seat in seats
        if seat.answer is None
    ]
    ends = [end for end in ends if end > now]
    return min([*ends, _FOREVER if deadline is None else deadline]) - now if ends else 0.0


class GrpcTransport:
    """Carries frames to the parties of a roster, wherever they are."""

    def __init__(self, seats: Seats, roster: Sequence[PartyId], absent_after: float = 30.0) -> None:
        self._seats = seats
        self._roster = list(roster)
        self._absent_after = absent_after

    @property
    def parties(self) -> list[PartyId]:
        """The whole roster, in its order, whoever is connected."""
        return list(self._roster)

    def ask(self, frames: Mapping[PartyId, bytes], timeout: float | None) -> dict[PartyId, bytes]:
        """Ask all at once. Who reconnects is asked again; who has been away for long counts as silent."""
        if (longest := max(map(len, frames.values()), default=0)) > MOST_BYTES:  # no party would take it
            raise FormatError(f"a question of {longest} bytes is too long: at most {MOST_BYTES} can be sent")
        deadline = None if timeout is None else time.monotonic() + timeout
        return self._seats.ask(frames, deadline, self._absent_after)

    def close(self) -> None:
        """Nothing to let go: the gate outlives a run."""


Observe = Callable[[str, Mapping[str, object]], None]
