"""The local engine: every party in this process, answered one after the other or by worker threads.

Kernels release the GIL, so threads do run side by side; replies are combined in party order, so results do not
depend on their number. Messages are encoded here too: nothing crosses but bytes, and the byte counts are real.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tertulia._disk import private_directory
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import EngineSetup
from tertulia.federation.messages import Answer
from tertulia.federation.party.host import PartyHost
from tertulia.federation.types import PartyId


class LocalTransport:
    """Carries frames to parties in this process."""

    def __init__(self, hosts: Sequence[PartyHost], workers: int = 1) -> None:
        self._hosts = {host.config.id: host for host in hosts}
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="party")

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self._hosts)

    def ask(self, frames: Mapping[PartyId, bytes], timeout: float | None) -> dict[PartyId, bytes]:
        """Ask all; who is late counts as silent, and its answer is voided when it is asked again."""
        futures: dict[PartyId, Future[bytes]] = {
            party: self._pool.submit(self._hosts[party].answer, frame) for party, frame in frames.items()
        }
        wait(futures.values(), timeout)
        return {party: _result(future) for party, future in futures.items() if future.done()}

    def close(self) -> None:
        """Wait for the last answers."""
        self._pool.shutdown()


def _result(answer: Future[bytes]) -> bytes:
    """An answer; should a party's host itself break, only its own answer is lost."""
    if (error := answer.exception()) is not None:
        return encode(Answer("failed", f"{type(error).__name__} in its host", None))
    return answer.result()


def start(setup: EngineSetup) -> LocalTransport:
    """Open every party in this process."""
    hosts = []
    for party, directory in setup.directories.items():
        if directory.exists():
            private_directory(directory)
        host = PartyHost(directory, setup.corpora.get(party))
        host.pins = setup.pins
        hosts.append(host)
    return LocalTransport(hosts, setup.workers)
