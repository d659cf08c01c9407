"""The server's connections: which parties are attached, the open question of each, and its answer. No network here.

One lock guards all connections; nothing under it takes longer than microseconds. A party has at most one open question
and one answer, so a slow party costs the server no more memory than these two.
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

_PATIENCE = 5  # streams per question that may end in malformed data
_NONSENSE = "it sent again and again what no party sends"


class Stream:
    """One stream to a party: the next question to send, and whether the stream has ended."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next: tuple[int, bytes] | None = None  # only the newest: an older one is obsolete
        self.ended = False
        self.reason: str | None = None  # why the server has ended it

    def send(self, question: tuple[int, bytes]) -> None:
        """Queue a question; it replaces one that still waits."""
        with self._changed:
            self._next = question
            self._changed.notify()

    def end(self, reason: str | None = None) -> None:
        """End the stream; the first reason stays."""
        with self._changed:
            if not self.ended:
                self.ended, self.reason = True, reason
            self._next = None
            self._changed.notify()

    def next_or_none(self, patience: float) -> tuple[int, bytes] | None:
        """Return the next question to send; None after `patience` seconds without one, or when the stream ends."""
        with self._changed:
            if self._next is None and not self.ended:
                self._changed.wait(patience)
            question, self._next = self._next, None
            return question


class Connection:
    """The state of one party: its stream, if it has one, its open question and its answer."""

    def __init__(self, since: float) -> None:
        self.stream: Stream | None = None
        self.connected_at = 0.0  # wall-clock time
        self.absent_since = since
        self.question: tuple[int, bytes] | None = None
        self.answer: bytes | None = None
        self.violations = 0
        self.answered = 0  # questions

    @property
    def wanted(self) -> int | None:
        """The serial number of the open question."""
        question = self.question
        return None if question is None or self.answer is not None else question[0]


class Connections:
    """The connections of all parties."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._connections: dict[PartyId, Connection] = {}
        self._opened = time.monotonic()

    def of(self, party: PartyId) -> Connection:
        """Return a party's connection, whether it is attached or not."""
        with self._changed:
            return self._of(party)

    def _of(self, party: PartyId) -> Connection:
        if party not in self._connections:
            self._connections[party] = Connection(self._opened)
        return self._connections[party]

    @property
    def connected(self) -> dict[PartyId, float]:
        """The attached parties, and when each attached."""
        with self._changed:
            return {name: one.connected_at for name, one in self._connections.items() if one.stream is not None}

    def attach(self, party: PartyId, stream: Stream, reason: str) -> None:
        """Attach a party's new stream: end an older one, for this reason, and send the open question again."""
        with self._changed:
            connection = self._of(party)
            older, connection.stream, connection.connected_at = connection.stream, stream, time.time()
            if connection.wanted is not None and connection.question is not None:
                stream.send(connection.question)
            self._changed.notify_all()
        if older is not None:
            older.end(reason)

    def detach(self, party: PartyId, stream: Stream) -> bool:
        """Detach a stream that has ended; return False if the party has attached a newer one."""
        stream.end()
        with self._changed:
            connection = self._of(party)
            if connection.stream is not stream:
                return False
            connection.stream, connection.absent_since = None, time.monotonic()
            self._changed.notify_all()
            return True

    def receive(self, party: PartyId, serial: int, answer: bytes) -> None:
        """Store an answer; drop one to an earlier question."""
        with self._changed:
            connection = self._of(party)
            if connection.wanted == serial:
                connection.answer, connection.violations = answer, 0
                connection.answered += 1
                self._changed.notify_all()

    def record_violation(self, party: PartyId) -> None:
        """Count a stream that ended in malformed data; after too many, fail the open question."""
        with self._changed:
            connection = self._of(party)
            connection.violations += 1
            if connection.violations > _PATIENCE:
                self._fail(connection, _NONSENSE)

    def fail(self, party: PartyId, reason: str) -> None:
        """Answer a party's open question in its place, as failed."""
        with self._changed:
            self._fail(self._of(party), reason)

    def _fail(self, connection: Connection, reason: str) -> None:
        if connection.wanted is not None:
            connection.answer, connection.violations = encode(Answer("failed", reason, None)), 0
            self._changed.notify_all()

    def ask(
        self, frames: Mapping[PartyId, bytes], deadline: float | None, absent_after: float, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all parties at once; return the answers that come in time, also from parties that reconnect."""
        with self._changed:
            asked = {party: self._of(party) for party in frames}
            for party, connection in asked.items():
                connection.question, connection.answer = (secrets.randbits(64), frames[party]), None
                if connection.stream is not None:
                    connection.stream.send(connection.question)
            while (left := _patience(asked.values(), deadline, absent_after, time.monotonic())) > 0:
                if enough is not None and sum(one.answer is not None for one in asked.values()) >= enough:
                    break
                self._changed.wait(None if left == _FOREVER else left)
            answers = {party: one.answer for party, one in asked.items() if one.answer is not None}
            for connection in asked.values():
                connection.question = connection.answer = None
            return answers


_FOREVER = float("inf")


def _patience(asked: Collection[Connection], deadline: float | None, absent_after: float, now: float) -> float:
    """Return the seconds to wait: until the deadline, or until a party counts as absent; 0 if all have answered.

    Attached parties are waited for, even when others count as absent.
    """
    ends = [
        _FOREVER if one.stream is not None else one.absent_since + absent_after for one in asked if one.answer is None
    ]
    ends = [end for end in ends if end > now]
    return min([*ends, _FOREVER if deadline is None else deadline]) - now if ends else 0.0


class GrpcTransport:
    """Carries frames to the parties of a roster over the network."""

    def __init__(self, connections: Connections, roster: Sequence[PartyId], absent_after: float = 30.0) -> None:
        self._connections = connections
        self._roster = list(roster)
        self._absent_after = absent_after

    @property
    def parties(self) -> list[PartyId]:
        """The whole roster, in its order, connected or not."""
        return list(self._roster)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all at once. A party that reconnects is asked again; one that stays away counts as silent."""
        if (longest := max(map(len, frames.values()), default=0)) > MOST_BYTES:  # parties would refuse it
            raise FormatError(f"a question of {longest} bytes is too long: at most {MOST_BYTES} can be sent")
        deadline = None if timeout is None else time.monotonic() + timeout
        return self._connections.ask(frames, deadline, self._absent_after, enough)

    def close(self) -> None:
        """Do nothing: the service outlives a run."""


Observe = Callable[[str, Mapping[str, object]], None]
