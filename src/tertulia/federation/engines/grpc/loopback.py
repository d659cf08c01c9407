"""Engine `grpc` on one machine: a temporary authority, a server on loopback, a process for each party.

Parties and server do everything that they do between organisations, mutual TLS included. A party that dies is started
and asked again. When the server dies, parties finish the step in work, and exit.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from tertulia.errors import ConfigError
from tertulia.federation.engines.base import EngineSetup, environment
from tertulia.federation.engines.grpc.connections import Connections, GrpcTransport
from tertulia.federation.engines.grpc.listener import ListenOptions
from tertulia.federation.engines.grpc.party_session import PartySession
from tertulia.federation.engines.grpc.service import Service
from tertulia.federation.engines.party_process import host_party
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import Members
from tertulia.federation.identity.party_identity import Identity
from tertulia.federation.types import PartyId

_HOST = "127.0.0.1"
_RESTARTS = 5  # in a row, without an answer
_LONGEST = 5.0  # seconds of back-off before a restart
_FAREWELL = b"."  # the last byte from a server that closes in order
_PATIENCE = 10.0  # seconds for a party to exit


class _Supervisor:
    """Keeps one party's process running."""

    def __init__(self, member: str, command: list[str], pins: Mapping[str, str], connections: Connections) -> None:
        self._command, self._environment = command, environment(pins)
        self._member, self._connections = member, connections
        self._closing = threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._environment)

    def _supervise(self) -> None:
        deaths, answered = 0, 0
        while True:
            self._process.wait()
            if self._closing.is_set():
                return
            now = self._connections.of(self._member).answered
            deaths, answered = (deaths + 1 if now == answered else 1), now
            if deaths > _RESTARTS:
                self._connections.fail(self._member, f"it died {deaths} times over one question: see its log")
                self._closing.wait(min(_LONGEST, 0.1 * 2 ** min(deaths - _RESTARTS, 10)))
            self._hang_up()
            self._start()

    def close(self) -> None:
        """Ask the process to exit after the step in work."""
        self._closing.set()
        self._hang_up(_FAREWELL)

    def wait(self) -> None:
        """Wait for the process to exit; kill it if it does not."""
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(_PATIENCE)
        self._hang_up()  # it may have been restarted at the last moment
        self._process.wait(_PATIENCE)

    def _hang_up(self, last: bytes = b"") -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):  # the process is dead, or the pipe is closed
            pipe.write(last)
        with contextlib.suppress(OSError):
            pipe.close()


class LoopbackTransport:
    """Carries frames to the parties' processes over TLS."""

    def __init__(self, setup: EngineSetup) -> None:
        # Parties may have any name; members' names are those of files.
        self._members = {party: f"party-{i}" for i, party in enumerate(setup.directories)}
        self._folder = Path(tempfile.mkdtemp(prefix="tertulia-grpc-"))
        authority = Authority.create(self._folder / "authority", "loopback")
        register = Members(self._folder)
        register.add(self._members.values())
        self._service = Service(authority, register, _NoBackend(), ListenOptions(f"{_HOST}:0", folder=self._folder))
        for member in self._members.values():
            _join(member, authority, register, self._folder / member)
        address = f"{_HOST}:{self._service.start()}"
        self._transport: GrpcTransport = self._service.transport([*self._members.values()], absent_after=float("inf"))
        self._supervisors = [
            _Supervisor(member, self._command(member, address, setup, party), setup.pins, self._service.connections)
            for party, member in self._members.items()
        ]

    def _command(self, member: str, address: str, setup: EngineSetup, party: PartyId) -> list[str]:
        # -P: modules are not imported from the working directory, which others may control
        command = [sys.executable, "-P", "-m", "tertulia.federation.engines.grpc.loopback"]
        command += [str(self._folder / member), address, str(setup.directories[party])]
        return command + [f"{module}={pin}" for module, pin in setup.pins.items()]

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self._members)

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all at once; return the answers that come in time."""
        answers = self._transport.ask({self._members[party]: frame for party, frame in frames.items()}, timeout, enough)
        return {party: answers[self._members[party]] for party in frames if self._members[party] in answers}

    def close(self) -> None:
        """End all processes, and the server."""
        for supervisor in self._supervisors:
            supervisor.close()
        for supervisor in self._supervisors:
            supervisor.wait()
        self._service.stop(0)
        shutil.rmtree(self._folder, ignore_errors=True)


class _NoBackend:
    """A backend that refuses every call: in a simulation, one owner has all parties and the run's directory."""

    def proposal(self) -> bytes:
        """Refuse."""
        raise ConfigError("this is a simulation on one machine: nothing is proposed")

    def approve(self, member: str, approval: bytes) -> bytes:
        """Refuse."""
        return self.proposal()

    def leave(self, member: str) -> None:
        """Refuse."""
        self.proposal()

    def model(self, member: str, run: str) -> bytes:
        """Refuse."""
        return self.proposal()

    def news(self, member: str) -> bytes:
        """Refuse."""
        return self.proposal()


def _join(member: str, authority: Authority, register: Members, directory: Path) -> None:
    """Give a party its identity, without a network."""
    invitation = authority.invite(member, "", "loopback")
    register.note_invitation(member, invitation.serial, invitation.expires)
    signed = authority.sign(Identity.create(directory, member, authority.certificate_pem), member)
    register.enrol(member, invitation.serial, signed)
    Identity(directory).accept(signed)


def start(setup: EngineSetup) -> LoopbackTransport:
    """Start the server, and a process for every party."""
    return LoopbackTransport(setup)


def attend(identity: Path, address: str, directory: Path, pins: Mapping[str, str]) -> None:
    """Run a party's process: attend until the server closes the pipe."""
    stop, orderly = threading.Event(), threading.Event()
    threading.Thread(target=_await_end, args=(stop, orderly), daemon=True).start()
    with host_party(directory, pins) as answer:
        PartySession(Identity(identity), address, answer).run(stop)
    if stop.is_set() and not orderly.is_set():  # the server was killed, and its folder is left over
        shutil.rmtree(identity.parent, ignore_errors=True)


def _await_end(stop: threading.Event, orderly: threading.Event) -> None:
    if sys.stdin.buffer.read():  # until the pipe is closed
        orderly.set()
    stop.set()


if __name__ == "__main__":
    attend(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), dict(pin.split("=", 1) for pin in sys.argv[4:]))
