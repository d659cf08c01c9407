"""The server's side of a job: frames travel as Collab calls, and a lost party ends the job.

A site's process cannot return to a job that it has dropped out of. Therefore the job ends, the supervisor submits it
again, and the run continues from its last commit with the same results.
"""

from __future__ import annotations

import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from nvflare.collab import CollabCallError, collab

from tertulia.errors import ConnectionTrouble, FormatError
from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.engines.nvflare.jobs import NOT_YET, WAIT
from tertulia.federation.engines.nvflare.kits import recorded_directory
from tertulia.federation.types import PartyId

LOST_AFTER = 15.0  # seconds for which calls to a site may fail
_CALL = WAIT + 15.0  # seconds for the answer to a call; FLARE's own limit is 60
_PAUSE = 0.5


class PartyLost(ConnectionTrouble):
    """A site has dropped out of the job."""


class CollabTransport:
    """Carries frames to the sites of a job."""

    def __init__(self, roster: Sequence[PartyId], clients: Mapping[PartyId, Any]) -> None:
        self._roster, self._clients = list(roster), clients
        self._over = threading.Event()

    @property
    def parties(self) -> list[PartyId]:
        """The whole roster, in its order; a party that is not in this job stays silent."""
        return list(self._roster)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all at once. A late party counts as silent; raise `PartyLost` for a site that cannot be reached."""
        if (longest := max(map(len, frames.values()), default=0)) > MOST_BYTES:
            raise FormatError(f"a question of {longest} bytes is too long: at most {MOST_BYTES} can be sent")
        deadline = None if timeout is None else time.monotonic() + timeout
        asked = [party for party in frames if party in self._clients]
        if not asked:
            return {}
        with ThreadPoolExecutor(len(asked), thread_name_prefix="asking") as pool:
            futures = {party: pool.submit(self._ask, party, frames[party], deadline) for party in asked}
            if any(future.exception() for future in wait(futures.values(), return_when=FIRST_EXCEPTION).done):
                self._over.set()  # the other threads need not wait for their answers
        answers = {party: future.result() for party, future in futures.items()}
        return {party: answer for party, answer in answers.items() if answer is not None}

    def _ask(self, party: PartyId, frame: bytes, deadline: float | None) -> bytes | None:
        """Ask one party; return None when time is up."""
        serial = secrets.randbits(62)
        failing: float | None = None  # since when
        while not self._over.is_set() and (deadline is None or time.monotonic() < deadline):
            try:
                answer = self._clients[party](timeout=_CALL).exchange(serial, frame)
            except CollabCallError as error:
                failing = failing or time.monotonic()
                if time.monotonic() - failing > LOST_AFTER:
                    raise PartyLost(f"site '{party}' has fallen out of the job: submit it again") from error
                self._over.wait(_PAUSE)
                continue
            if not isinstance(answer, bytes):
                raise PartyLost(f"site '{party}' answers what no party answers: see which version it runs")
            if answer != NOT_YET:
                return answer
            failing, frame = None, b""
        return None

    def hand_out(self, run: str, model: bytes) -> list[PartyId]:
        """Send a run's shared model to all sites of this job; return the parties that have stored it."""
        return [party for party in self._roster if party in self._clients and self._send_model(party, run, model)]

    def _send_model(self, party: PartyId, run: str, model: bytes) -> bool:
        try:
            return bool(self._clients[party](timeout=_CALL).take(run, model))
        except CollabCallError:
            return False

    def close(self) -> None:
        """Stop asking; the end of the job releases the sites."""
        self._over.set()


class Server(ABC):
    """The server's component of a job; its only argument is the run."""

    def __init__(self, run: str) -> None:
        self.run = run

    @abstractmethod
    def drive(self, place: Path, clients: Mapping[PartyId, Any]) -> None:
        """Drive the run of the federation in this directory, over these sites."""

    @collab.main  # type: ignore[untyped-decorator]
    def main(self) -> None:
        """Drive the run; an exception ends the job as failed."""
        clients = {str(client.name): client for client in collab.clients}
        self.drive(recorded_directory(Path(collab.workspace.get_root_dir())), clients)
