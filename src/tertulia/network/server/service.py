"""`tertulia serve`: a long-lived process that admits parties, and drives a started run to its end.

It can be killed at any moment. After a restart it resumes the run from the last commit. It asks reconnected parties
again, and they repeat their stored answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tertulia._disk import Level
from tertulia._locks import directory_lock, is_held
from tertulia.errors import ConfigError, QuorumError, TertuliaError
from tertulia.federation.engines.base import Transport
from tertulia.federation.engines.grpc.listener import ListenOptions
from tertulia.federation.engines.grpc.service import Service
from tertulia.federation.types import PartyId
from tertulia.metrics.history import Participation, participation
from tertulia.network.endings import ABANDONED, FINISHED, STOPPED, UNDER_WAY
from tertulia.network.server.federation_directory import FederationDirectory, NetworkTerms, split_address
from tertulia.network.server.run_registry import RunRegistry
from tertulia.operations.health import Monitor
from tertulia.operations.progress import progress_or_none
from tertulia.operations.status import ServerLog, last_status
from tertulia.runs.directory import Run
from tertulia.runs.driver import finish

_LOOK = 0.2  # seconds between two checks for a started run
_RETRY = 5.0  # seconds until a run without a quorum tries again, unless a party connects earlier


class Halted(Exception):
    """Raised in the driving thread if the server must stop, or if the run was abandoned."""


class FederationServer:
    """The process that serves one federation until it is stopped."""

    def __init__(
        self, federation: FederationDirectory, say: Callable[[str], None], monitor: Monitor | None = None
    ) -> None:
        self.federation, self.registry, self.say = federation, RunRegistry(federation), say
        self.monitor = monitor or Monitor("server", federation.file.name)
        self._stop = threading.Event()
        self._driver, self._asking = threading.current_thread(), False
        self._log = ServerLog(federation.directory, say, self.monitor)

    def stop(self, *_: Any) -> None:
        """Stop after the current step, or at once while the server waits for answers, because parties store them.

        This is also a signal handler. As such it runs in the driving thread, and raises `Halted` to end the wait.
        """
        self._stop.set()
        if self._asking and threading.current_thread() is self._driver:
            raise Halted

    def serve(self) -> None:
        """Listen and drive until `stop`."""
        self._driver = threading.current_thread()
        self.federation.check_engine("grpc")
        directory, file = self.federation.directory, self.federation.file
        with directory_lock(directory, again=f"tertulia serve {directory}"):
            listening = ListenOptions(file.listens_on, [split_address(file.address)[0]])
            self._service = Service(
                self.federation.authority, self.federation.members, self.registry, listening, self._seen
            )
            self._log.facts |= {"address": file.address, "port": self._service.start()}
            self.note("serving", address=file.address)
            self.say(f"serving '{file.name}' on {file.listens_on}; Ctrl-C ends it, and nothing is lost")
            try:
                self._loop()
            except Halted:
                pass
            finally:
                self._service.stop()
                self.note("ended")

    def _loop(self) -> None:
        while not self._stop.wait(_LOOK):
            try:
                run = self.registry.under_way()
            except OSError as error:  # a temporary error, for example no free file descriptor
                self._warn(f"cannot look for a run ({error.strerror}): trying again")
                continue
            if run is not None:
                self._drive(run)

    def _warn(self, text: str) -> None:
        if self._log.is_news(text):
            self.note("warning", "warning", text=text)

    def _drive(self, run: Run) -> None:
        """Drive a run as far as possible; record why it ends, and continue to serve."""
        transport = _Watched(self._service.transport(run.parties, self._absent_after()), self)
        self._log.begin(run.id)
        try:
            with closing(transport):
                finish(run, observe=self._log.observe, transport=transport)
        except Halted:
            self.note("halted", run=run.id)
            return
        except QuorumError as error:
            self._wait_for_parties(run, str(error))
            return
        except TertuliaError as error:
            self._end(run, STOPPED, str(error))
            return
        except Exception as error:  # a bug: the run stops, but the server stays up
            self._end(run, STOPPED, f"{type(error).__name__}: {error}")
            return
        self._end(run, FINISHED)

    def _absent_after(self) -> float:
        """Read `absent_after` from the file; use the default while the file is invalid, for example during an edit."""
        try:
            return self.federation.file.terms.absent_after
        except ConfigError as error:
            self._warn(str(error))
            return NetworkTerms().absent_after

    def _end(self, run: Run, state: str, text: str = "") -> None:
        self.registry.end(run.id, state, text)
        self._log.forget()
        self.note(state, "error" if text else "info", run=run.id, text=text)
        if state == FINISHED:
            self.say(f"run {run.id} is finished: tertulia topics {run.directory}")
        else:
            again = f"`tertulia start {self.federation.directory}` goes on with it"
            self.say(f"run {run.id} has stopped: {text}. When that is mended, {again}")

    def _wait_for_parties(self, run: Run, text: str) -> None:
        """Wait until a party connects or `_RETRY` seconds have passed; the main loop then resumes the run."""
        if self._log.is_news(text):
            self.note("waiting", "warning", run=run.id, text=text)
            self.say(f"run {run.id} waits: {text}")
        before, until = self._service.connected, time.monotonic() + _RETRY
        while time.monotonic() < until and self._service.connected == before and not self._stop.wait(_LOOK):
            pass

    # --- the log ------------------------------------------------------------------------------------------------

    def check(self, run: str) -> None:
        """Raise `Halted` if the server must stop, or if the run was abandoned."""
        if self._stop.is_set() or self.registry.state(run).state == ABANDONED:
            raise Halted

    def _seen(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Record an event of the network engine; the engine calls this in its own threads."""
        if kind in ("connected", "disconnected"):
            self._log.forget()
        self.monitor.absent(len(set(self.federation.members.keys()) - set(self._service.connected)))
        self.note(kind, "warning" if kind in ("refused", "warning") else "info", **facts)

    def note(self, event: str, level: Level = "info", text: str = "", **facts: Any) -> None:
        """Write an event to the log, with the connected members."""
        self._log.facts["connected"] = self._service.connected
        self._log.note(event, level, text, **facts)


class _Watched:
    """A transport that raises `Halted` once the server must stop."""

    def __init__(self, inner: Transport, server: FederationServer) -> None:
        self._inner, self._server = inner, server

    @property
    def parties(self) -> list[PartyId]:
        """The roster."""
        return list(self._inner.parties)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask the parties, unless the server must stop."""
        self._server._asking = True
        try:
            self._server.check(self._server._log.facts["run"]["id"])
            return self._inner.ask(frames, timeout, enough)
        finally:
            self._server._asking = False

    def close(self) -> None:
        """Release the parties."""
        self._inner.close()


def status_of(federation: FederationDirectory) -> dict[str, Any]:
    """Describe members, proposal and newest run from the files, with the server's last `status.json`."""
    registry, directory = RunRegistry(federation), federation.directory
    proposal, run, last, serving = registry.current(), registry.newest(), last_status(directory), is_held(directory)
    connected = last.get("connected", {}) if serving else {}
    approved = registry.approved(proposal)
    state = registry.state(run) if run else None
    known = last["run"] if last and last["run"].get("id") == run else {}
    took_part = _participation(federation.runs / run) if run else {}
    return {
        "federation": federation.file.name,
        "engine": federation.file.engine,
        "serving": serving,
        "members": [
            {
                "member": name,
                "state": federation.members.state(name),
                "connected": name in connected,
                **({"approved": name in approved} if federation.file.engine == "grpc" else {}),  # else unknown
                **({"took_part": str(took_part[name]) if name in took_part else ""} if took_part else {}),
            }
            for name in dict.fromkeys((*federation.file.members, *federation.members.names))
        ],
        "proposal": {
            "run": proposal.run,
            "started": run == proposal.run,
            "missing": proposal.missing,
            "from": proposal.start.get("run"),
        },
        "run": {
            "id": run,
            "state": state.state,
            "text": state.text,
            **known,
            "participation": {name: one.to_dict() for name, one in took_part.items()},
        }
        if state
        else None,
        "model": str(directory / "runs" / str(run) / "model") if state and state.state == FINISHED else None,
        "edited": state is not None and state.state == UNDER_WAY and registry.edited(),
    }


def _participation(directory: Path) -> dict[str, Participation]:
    """Return the rounds that each party has taken part in so far."""
    run = Run.open(directory)
    so_far = progress_or_none(run)
    return participation(so_far.history, run.parties) if so_far else {}
