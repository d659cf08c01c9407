"""A party's side of a job: one published method answers frames, another stores the shared model.

FLARE sends every exception of a published method to the caller, traceback included. Therefore nothing is raised here:
reasons stay in the party's own log. Other sites of the job can call these methods, too; they get a constant.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from nvflare.collab import collab

from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.engines.nvflare.jobs import NOT_YET, SERVER, WAIT
from tertulia.federation.engines.nvflare.kits import recorded_directory
from tertulia.federation.party.failures import ENCODED_FAILURE


class Site(ABC):
    """The component of a job at a site; a subclass that knows parties defines `answers`, `keep` and `leave`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="party")  # one question is answered at a time
        self._asked: tuple[int, Future[bytes]] | None = None
        self._answer: Callable[[bytes], bytes] | None = None

    @abstractmethod
    def answers(self, place: Path, site: str) -> Callable[[bytes], bytes]:
        """Return the function that answers frames, for the party in this directory and FLARE's name of the site."""

    @abstractmethod
    def keep(self, place: Path, run: str, model: bytes) -> None:
        """Store the shared model of a run."""

    @abstractmethod
    def leave(self) -> None:
        """Release the party: the job has ended."""

    @collab.final  # type: ignore[untyped-decorator]
    def end(self) -> None:
        """Finish the step in work, and leave."""
        self._worker.shutdown(cancel_futures=True)
        self.leave()

    @collab.publish  # type: ignore[untyped-decorator]
    def exchange(self, serial: int, frame: bytes) -> bytes:
        """Answer a frame, or return `NOT_YET`; a repeat is not worked on twice."""
        if collab.caller != SERVER or not isinstance(frame, bytes):
            return ENCODED_FAILURE
        workspace, site = Path(collab.workspace.get_root_dir()), str(collab.site_name)
        with self._lock:
            if self._asked is None or self._asked[0] != serial:
                if self._asked is not None:
                    self._asked[1].cancel()  # it is obsolete
                self._asked = (serial, self._worker.submit(self._work, workspace, site, frame))
            future = self._asked[1]
        wait([future], WAIT)
        return future.result() if future.done() and not future.cancelled() else NOT_YET

    @collab.publish  # type: ignore[untyped-decorator]
    def take(self, run: str, model: bytes) -> bool:
        """Store the shared model of a run; return whether that succeeded."""
        if collab.caller != SERVER or not isinstance(model, bytes) or not str(run).isalnum():
            return False
        try:
            self.keep(recorded_directory(Path(collab.workspace.get_root_dir())), str(run), model)
        except Exception:  # the reason is in the party's log, if there is a party
            return False
        return True

    def _work(self, workspace: Path, site: str, frame: bytes) -> bytes:
        try:
            if self._answer is None:
                self._answer = self.answers(recorded_directory(workspace), site)
            answer = self._answer(frame)
        except Exception:  # the reason must not leave the site
            return ENCODED_FAILURE
        return answer if len(answer) <= MOST_BYTES else ENCODED_FAILURE
