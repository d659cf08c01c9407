"""`tertulia serve`: one long-lived process that lets parties in, and drives the run that was started, to its end.

It can be killed at any moment. Started again, it goes on with the run from its last commit; parties that connect again
are asked again, and repeat what they answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

from tertulia._locks import holding, is_held
from tertulia._logs import Level
from tertulia.errors import ConfigError, QuorumError, TertuliaError
from tertulia.federation.engines.base import Transport
from tertulia.federation.engines.grpc.gate import Gate
from tertulia.federation.engines.grpc.listening import Listening
from tertulia.federation.types import PartyId
from tertulia.runs.desk import ABANDONED, FINISHED, STOPPED, UNDER_WAY, Desk
from tertulia.runs.driver import finish
from tertulia.runs.federations import Federation, NetworkTerms, split_address
from tertulia.runs.layout import Run
from tertulia.runs.noting import Notes, said
from tertulia.runs.seeing import Watch

_LOOK = 0.2  # seconds between two looks for a run that was started
_RETRY = 5.0  # seconds until a run that found too few parties tries again, unless somebody connects


class Halted(Exception):
    """The server is to end, or the run was abandoned."""


class Server:
    """Serves one federation until it is stopped."""

    def __init__(self, federation: Federation, say: Callable[[str], None], watch: Watch | None = None) -> None:
        self.federation, self.desk, self.say = federation, Desk(federation), say
        self.watch = watch or Watch("server", federation.file.name)
        self._stop = threading.Event()
        self._driver, self._asking = threading.current_thread(), False
        self._notes = Notes(federation.directory, say, self.watch)

    def stop(self, *_: Any) -> None:
        """End after the step under way, or at once if only answers are awaited, which parties keep for us.

        It is a signal's handler, too. Then it runs in the thread that drives, which it can call away from waiting.
        """
        self._stop.set()
        if self._asking and threading.current_thread() is self._driver:
            raise Halted

    def serve(self) -> None:
        """Listen and drive until `stop`."""
        self._driver = threading.current_thread()
        self.federation.check_engine("grpc")
        directory, file = self.federation.directory, self.federation.file
        with holding(directory, again=f"tertulia serve {directory}"):
            listening = Listening(file.listens_on, [split_address(file.address)[0]])
            self._gate = Gate(self.federation.authority, self.federation.members, self.desk, listening, self._seen)
            self._notes.facts |= {"address": file.address, "port": self._gate.start()}
            self.note("serving", address=file.address)
            self.say(f"serving '{file.name}' on {file.listens_on}; Ctrl-C ends it, and nothing is lost")
            try:
                self._loop()
            except Halted:
                pass
            finally:
                self._gate.stop()
                self.note("ended")

    def _loop(self) -> None:
        while not self._stop.wait(_LOOK):
            run = self.desk.under_way()
            if run is not None:
                self._drive(run)

    def _drive(self, run: Run) -> None:
        """Drive a run as far as it goes; what ends it is written down, and the server goes on serving."""
        transport = _Watched(self._gate.transport(run.parties, self._absent_after()), self)
        self._notes.begin(run.id)
        try:
            with closing(transport):
                finish(run, observe=self._notes.observe, transport=transport)
        except Halted:
            self.note("halted", run=run.id)
            return
        except QuorumError as error:
            self._wait_for_parties(run, str(error))
            return
        except TertuliaError as error:
            self._end(run, STOPPED, str(error))
            return
        except Exception as error:  # a fault of ours: the run stops, the other commands still work
            self._end(run, STOPPED, f"{type(error).__name__}: {error}")
            return
        self._end(run, FINISHED)

    def _absent_after(self) -> float:
        """As the file says now; while it is broken, being edited say, as usual."""
        try:
            return self.federation.file.terms.absent_after
        except ConfigError as error:
            if self._notes.is_news(str(error)):
                self.note("warning", "warning", text=str(error))
            return NetworkTerms().absent_after

    def _end(self, run: Run, state: str, text: str = "") -> None:
        self.desk.end(run.id, state, text)
        self._notes.forget()
        self.note(state, "error" if text else "info", run=run.id, text=text)
        if state == FINISHED:
            self.say(f"run {run.id} is finished: tertulia topics {run.directory}")
        else:
            again = f"`tertulia start {self.federation.directory}` goes on with it"
            self.say(f"run {run.id} has stopped: {text}. When that is mended, {again}")

    def _wait_for_parties(self, run: Run, text: str) -> None:
        """Too few are there: the run is where it was, and goes on when somebody connects, or after a while."""
        if self._notes.is_news(text):
            self.note("waiting", "warning", run=run.id, text=text)
            self.say(f"run {run.id} waits: {text}")
        before, until = self._gate.connected, time.monotonic() + _RETRY
        while time.monotonic() < until and self._gate.connected == before and not self._stop.wait(_LOOK):
            pass

    # --- what is seen ---------------------------------------------------------------------------------------------

    def check(self, run: str) -> None:
        """Raise `Halted` if nothing more is to be asked."""
        if self._stop.is_set() or self.desk.state(run).state == ABANDONED:
            raise Halted

    def _seen(self, kind: str, facts: Mapping[str, Any]) -> None:
        """What happens at the gate, in its own threads."""
        if kind in ("connected", "disconnected"):
            self._notes.forget()
        self.watch.absent(len(set(self.federation.members.keys()) - set(self._gate.connected)))
        self.note(kind, "warning" if kind in ("refused", "warning") else "info", **facts)

    def note(self, event: str, level: Level = "info", text: str = "", **facts: Any) -> None:
        """Say what has happened, and who is connected."""
        self._notes.facts["connected"] = self._gate.connected
        self._notes.note(event, level, text, **facts)


class _Watched:
    """A transport that asks nothing more once the server is to end."""

    def __init__(self, inner: Transport, server: Server) -> None:
        self._inner, self._server = inner, server

    @property
    def parties(self) -> list[PartyId]:
        """The roster."""
        return list(self._inner.parties)

    def ask(self, frames: Mapping[PartyId, bytes], timeout: float | None) -> dict[PartyId, bytes]:
        """Ask, unless it is over."""
        self._server._asking = True
        try:
            self._server.check(self._server._notes.facts["run"]["id"])
            return self._inner.ask(frames, timeout)
        finally:
            self._server._asking = False

    def close(self) -> None:
        """Let the parties go."""
        self._inner.close()


def status_of(federation: Federation) -> dict[str, Any]:
    """Members, the newest run and what is proposed, from the files; what only the server knows is as old as it says."""
    desk, directory = Desk(federation), federation.directory
    proposal, run, last, serving = desk.current(), desk.newest(), said(directory), is_held(directory)
    connected = last.get("connected", {}) if serving else {}
    approved = desk.approved(proposal)
    state = desk.state(run) if run else None
    known = last["run"] if last and last["run"].get("id") == run else {}
    return {
        "federation": federation.file.name,
        "engine": federation.file.engine,
        "serving": serving,
        "members": [
            {
                "member": name,
                "state": federation.members.state(name),
                "connected": name in connected,
                **({"approved": name in approved} if federation.file.engine == "grpc" else {}),  # else parties know
            }
            for name in dict.fromkeys((*federation.file.members, *federation.members.names))
        ],
        "proposal": {
            "run": proposal.run,
            "started": run == proposal.run,
            "missing": proposal.missing,
            "from": proposal.start.get("run"),
        },
        "run": {"id": run, "state": state.state, "text": state.text, **known} if state else None,
        "model": str(directory / "runs" / str(run) / "model") if state and state.state == FINISHED else None,
        "edited": state is not None and state.state == UNDER_WAY and desk.edited(),
    }
