"""The local engine: all parties in this process, served one after the other or by worker threads.

Kernels release the GIL, so threads run in parallel. Replies are combined in party order, so results do not depend on
the number of threads. Messages are encoded here, too, so byte counts are those of other engines.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from tertulia._disk import private_directory
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import EngineSetup
from tertulia.federation.messages import Answer
from tertulia.federation.packing import Contents
from tertulia.federation.party.host import PartyHost
from tertulia.federation.types import PartyId


class _Queue:
    """A party's questions, answered by the workers one at a time and in order.

    The order matters, because a question voids the answers to later ones: a question that timed out, if answered after
    its successor, would make the party lose an answer that counted.
    """

    def __init__(self, answer: Callable[[bytes], bytes], pool: ThreadPoolExecutor) -> None:
        self._answer = answer
        self._pool = pool
        self._open: deque[tuple[bytes, Future[bytes]]] = deque()
        self._busy = False
        self._lock = threading.Lock()  # of the two above

    def ask(self, frame: bytes) -> Future[bytes]:
        """Queue a question; it can be cancelled until a worker takes it."""
        future: Future[bytes] = Future()
        with self._lock:
            self._open.append((frame, future))
            start, self._busy = not self._busy, True
        if start:
            self._pool.submit(self._work)
        return future

    def _work(self) -> None:
        """Answer until the queue is empty; a waiting question blocks no worker."""
        while True:
            with self._lock:
                if not self._open:
                    self._busy = False
                    return
                frame, future = self._open.popleft()
            if future.set_running_or_notify_cancel():
                future.set_result(self._answer_or_fail(frame))

    def _answer_or_fail(self, frame: bytes) -> bytes:
        """Answer a frame; an exception in a party's host fails only this party."""
        try:
            return self._answer(frame)
        except Exception as error:
            return encode(Answer("failed", f"{type(error).__name__} in its host", None))


class LocalTransport:
    """Carries frames to parties in this process."""

    def __init__(self, hosts: Sequence[PartyHost], workers: int = 1) -> None:
        self.hosts = {host.config.id: host for host in hosts}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="party")
        self._queues = {party: _Queue(partial(self._answer, party), self._pool) for party in self.hosts}

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self.hosts)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all. A late party counts as silent, and its answer is voided when it is asked again."""
        asked = {party: self._queues[party].ask(frame) for party, frame in frames.items()}
        answered, late = wait(asked.values(), timeout)
        for future in late:
            future.cancel()  # if no worker has taken it
        return {party: future.result() for party, future in asked.items() if future in answered}

    def close(self) -> None:
        """Wait for the last answers."""
        self._pool.shutdown()

    def _answer(self, party: PartyId, frame: bytes) -> bytes:
        return self.hosts[party].answer(frame)


def start(setup: EngineSetup) -> LocalTransport:
    """Open every party in this process."""
    hosts, contents = [], Contents()  # one question to all is decoded once
    for party, directory in setup.directories.items():
        if directory.exists():
            private_directory(directory)
        host = PartyHost(directory, setup.corpora.get(party), contents)
        host.pins = setup.pins
        hosts.append(host)
    return LocalTransport(hosts, setup.workers)
