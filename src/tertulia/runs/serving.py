"""`tertulia serve`: one long-lived process that lets parties in, and drives the run that was started, to its end.

It can be killed at any moment. Started again, it goes on with the run from its last commit; parties that connect again
are asked again, and repeat what they answered.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia._locks import holding, is_held
from tertulia._logs import Level, write_line
from tertulia.errors import ConfigError, JournalError, QuorumError, TertuliaError
from tertulia.federation.engines.base import Transport
from tertulia.federation.engines.grpc.gate import Gate
from tertulia.federation.engines.grpc.listening import Listening
from tertulia.federation.types import PartyId
from tertulia.runs.desk import ABANDONED, FINISHED, STOPPED, UNDER_WAY, Desk
from tertulia.runs.driver import finish
from tertulia.runs.federations import Federation, NetworkTerms, split_address
from tertulia.runs.layout import Run
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
        self._lock = threading.Lock()  # of the two files that are written here
        self._announced: set[str] = set()  # since a party came or went, or a round was done
        before = _said(federation.directory).get("run", {})  # a run that goes on has its sums of bytes
        self._facts: dict[str, Any] = {"pid": os.getpid(), "connected": {}, "run": before}

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
        directory, file = self.federation.directory, self.federation.file
        with holding(directory, again=f"tertulia serve {directory}"):
            listening = Listening(file.listens_on, [split_address(file.address)[0]])
            self._gate = Gate(self.federation.authority, self.federation.members, self.desk, listening, self._seen)
            self._facts |= {"address": file.address, "port": self._gate.start()}
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
        if self._facts["run"].get("id") != run.id:
            self._facts["run"] = {"id": run.id, "round": 0, "seconds": 0.0, "bytes": {}, "absent": []}
        if self._is_news(f"run {run.id}"):
            self.note("run", run=run.id)
        try:
            with closing(transport):
                finish(run, observe=self._observe, transport=transport)
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
            if self._is_news(str(error)):
                self.note("warning", "warning", text=str(error))
            return NetworkTerms().absent_after

    def _end(self, run: Run, state: str, text: str = "") -> None:
        self.desk.end(run.id, state, text)
        self._announced = set()
        self.note(state, "error" if text else "info", run=run.id, text=text)
        if state == FINISHED:
            self.say(f"run {run.id} is finished: tertulia topics {run.directory}")
        else:
            again = f"`tertulia start {self.federation.directory}` goes on with it"
            self.say(f"run {run.id} has stopped: {text}. When that is mended, {again}")

    def _wait_for_parties(self, run: Run, text: str) -> None:
        """Too few are there: the run is where it was, and goes on when somebody connects, or after a while."""
        if self._is_news(text):
            self.note("waiting", "warning", run=run.id, text=text)
            self.say(f"run {run.id} waits: {text}")
        before, until = self._gate.connected, time.monotonic() + _RETRY
        while time.monotonic() < until and self._gate.connected == before and not self._stop.wait(_LOOK):
            pass

    def _is_news(self, text: str) -> bool:
        """Whether this was not said before, as things are: a run that waits finds the same again and again."""
        if text in self._announced:
            return False
        self._announced.add(text)
        return True

    # --- what is seen ---------------------------------------------------------------------------------------------

    def check(self, run: str) -> None:
        """Raise `Halted` if nothing more is to be asked."""
        if self._stop.is_set() or self.desk.state(run).state == ABANDONED:
            raise Halted

    def _observe(self, kind: str, facts: Mapping[str, Any]) -> None:
        """The facts of a round, or a warning."""
        self.watch.observe(kind, facts)
        if kind == "warning":
            if self._is_news(str(facts["text"])):
                self.note("warning", "warning", text=str(facts["text"]))
                self.say(f"warning: {facts['text']}")
            return
        self._announced = set()
        known = self._facts["run"]
        sent = {party: list(pair) for party, pair in facts["bytes"].items()}
        total = {
            p: [a + b for a, b in zip(known["bytes"].get(p, [0, 0]), pair, strict=True)] for p, pair in sent.items()
        }
        scores = {name: facts[name] for name in ("perplexity", "topics") if name in facts}
        known |= {"round": facts["round"], "seconds": facts["seconds"], **scores}
        known |= {"bytes": known["bytes"] | total, "absent": [p for p, (_, up) in sent.items() if not up]}
        self.note("round", run=known["id"], round=facts["round"], seconds=facts["seconds"], bytes=sent, **scores)

    def _seen(self, kind: str, facts: Mapping[str, Any]) -> None:
        """What happens at the gate, in its own threads."""
        if kind in ("connected", "disconnected"):
            self._announced = set()
        self.watch.absent(len(set(self.federation.members.keys()) - set(self._gate.connected)))
        self.note(kind, "warning" if kind in ("refused", "warning") else "info", **facts)

    def note(self, event: str, level: Level = "info", text: str = "", **facts: Any) -> None:
        """A line in `server.log`, and how things are in `status.json`; a full disk stops nobody here."""
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self.watch.say(state=event)
        with self._lock:
            self._facts |= {"time": now, "event": event, "connected": self._gate.connected}
            write_line(self.federation.directory / "server.log", level, text, event=event, **facts)
            try:
                _write(self.federation.directory / "status.json", self._facts)
            except JournalError as error:
                self.say(f"warning: {error}")


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
            self._server.check(self._server._facts["run"]["id"])
            return self._inner.ask(frames, timeout)
        finally:
            self._server._asking = False

    def close(self) -> None:
        """Let the parties go."""
        self._inner.close()


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    atomic_write(path, json.dumps(facts, default=str).encode(), durable=False)


def status_of(federation: Federation) -> dict[str, Any]:
    """Members, the newest run and what is proposed, from the files; what only the server knows is as old as it says."""
    desk, directory = Desk(federation), federation.directory
    proposal, run, said, serving = desk.current(), desk.newest(), _said(directory), is_held(directory)
    connected = said.get("connected", {}) if serving else {}
    approved = desk.approved(proposal)
    state = desk.state(run) if run else None
    known = said["run"] if said and said["run"].get("id") == run else {}
    return {
        "federation": federation.file.name,
        "serving": serving,
        "members": [
            {
                "member": name,
                "state": federation.members.state(name),
                "connected": name in connected,
                "approved": name in approved,
            }
            for name in dict.fromkeys((*federation.file.members, *federation.members.names))
        ],
        "proposal": {"run": proposal.run, "started": run == proposal.run, "missing": proposal.missing},
        "run": {"id": run, "state": state.state, "text": state.text, **known} if state else None,
        "model": str(directory / "runs" / str(run) / "model") if state and state.state == FINISHED else None,
        "edited": state is not None and state.state == UNDER_WAY and desk.edited(),
    }


def _said(directory: Path) -> dict[str, Any]:
    """What the server last said of itself."""
    try:
        facts = json.loads((directory / "status.json").read_bytes())
        return facts if isinstance(facts, dict) and isinstance(facts.get("run"), dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}
