"""Engine `grpc` on one machine: an authority to throw away, a server on loopback, a process for each party.

All that parties and server do across houses they do here, mutual TLS included. A party that dies is started again, and
its open question is asked again; when the server dies, parties end the step that they are in, and go.
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
from tertulia.federation.engines.grpc.attendance import Attendance
from tertulia.federation.engines.grpc.gate import Gate
from tertulia.federation.engines.grpc.seats import GrpcTransport, Seats
from tertulia.federation.engines.hosting import hosted
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import Members
from tertulia.federation.identity.own import Identity
from tertulia.federation.types import PartyId

_HOST = "127.0.0.1"
_RESTARTS = 5  # in a row, without an answer
_LONGEST = 5.0  # seconds before the next restart of a party that only dies
_FAREWELL = b"."  # the last that a party hears from a server that was not killed
_PATIENCE = 10.0  # seconds for a party to end


class _Keeper:
    """Keeps one party's process running."""

    def __init__(self, member: str, command: list[str], pins: Mapping[str, str], seats: Seats) -> None:
        self._command, self._environment = command, environment(pins)
        self._member, self._seats = member, seats
        self._closing = threading.Event()
        self._start()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._environment)

    def _keep(self) -> None:
        deaths, answered = 0, 0
        while True:
            self._process.wait()
            if self._closing.is_set():
                return
            now = self._seats.seat(self._member).answered
            deaths, answered = (deaths + 1 if now == answered else 1), now
            if deaths > _RESTARTS:
                self._seats.give_up(self._member, f"it died {deaths} times over one question: see its log")
                self._closing.wait(min(_LONGEST, 0.1 * 2 ** min(deaths - _RESTARTS, 10)))
            self._hang_up()
            self._start()

    def let_go(self) -> None:
        """Have the process end once it has done what it is doing."""
        self._closing.set()
        self._hang_up(_FAREWELL)

    def wait(self) -> None:
        """Wait for its end, but not for ever."""
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(_PATIENCE)
        self._hang_up()  # should it have been started again at the last moment
        self._process.wait(_PATIENCE)

    def _hang_up(self, last_word: bytes = b"") -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):  # it is dead, or was let go before
            pipe.write(last_word)
        with contextlib.suppress(OSError):
            pipe.close()


class LoopbackTransport:
    """Carries frames to the parties' processes over TLS."""

    def __init__(self, setup: EngineSetup) -> None:
        self._members = {
            party: f"party-{i}" for i, party in enumerate(setup.directories)
        }  # whatever parties are called
        self._folder = Path(tempfile.mkdtemp(prefix="tertulia-grpc-"))
        authority = Authority.create(self._folder / "authority", "loopback")
        register = Members(self._folder)
        register.add(self._members.values())
        self._gate = Gate(authority, register, _NoDesk(), f"{_HOST}:0")
        for member in self._members.values():
            _join(member, authority, register, self._folder / member)
        address = f"{_HOST}:{self._gate.start()}"
        self._transport: GrpcTransport = self._gate.transport(list(self._members.values()), absent_after=float("inf"))
        self._keepers = [
            _Keeper(member, self._command(member, address, setup, party), setup.pins, self._gate.seats)
            for party, member in self._members.items()
        ]

    def _command(self, member: str, address: str, setup: EngineSetup, party: PartyId) -> list[str]:
        # -P: modules are not looked for in the working directory, which may be anybody's
        command = [sys.executable, "-P", "-m", "tertulia.federation.engines.grpc.loopback"]
        command += [str(self._folder / member), address, str(setup.directories[party])]
        return command + [f"{module}={pin}" for module, pin in setup.pins.items()]

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self._members)

    def ask(self, frames: Mapping[PartyId, bytes], timeout: float | None) -> dict[PartyId, bytes]:
        """Ask all at once, then gather what comes in time."""
        answers = self._transport.ask({self._members[party]: frame for party, frame in frames.items()}, timeout)
        return {party: answers[self._members[party]] for party in frames if self._members[party] in answers}

    def close(self) -> None:
        """End all processes, and the server."""
        for keeper in self._keepers:
            keeper.let_go()
        for keeper in self._keepers:
            keeper.wait()
        self._gate.stop(0)
        shutil.rmtree(self._folder, ignore_errors=True)


class _NoDesk:
    """There is nothing to approve: one owner has all parties."""

    def proposal(self) -> bytes:
        """None."""
        raise ConfigError("this is a simulation on one machine: nothing is proposed")

    def approve(self, member: str, approval: bytes) -> bytes:
        """None."""
        return self.proposal()

    def leave(self, member: str) -> None:
        """Nobody leaves."""
        self.proposal()

    def model(self, member: str, run: str) -> bytes:
        """It is in the run's directory."""
        return self.proposal()


def _join(member: str, authority: Authority, register: Members, directory: Path) -> None:
    """Give a party its identity, without a network."""
    invitation = authority.invite(member, "", "loopback")
    register.invited(member, invitation.serial, invitation.expires)
    signed = authority.sign(Identity.create(directory, member, authority.certificate_pem), member)
    register.enrol(member, invitation.serial, signed)
    Identity(directory).accept(signed)


def start(setup: EngineSetup) -> LoopbackTransport:
    """Start the server, and a process for every party."""
    return LoopbackTransport(setup)


def attend(identity: Path, address: str, directory: Path, pins: Mapping[str, str]) -> None:
    """What a party's process does: attend until the server hangs up."""
    stop, orderly = threading.Event(), threading.Event()
    threading.Thread(target=_await_end, args=(stop, orderly), daemon=True).start()
    with hosted(directory, pins) as answer:
        Attendance(Identity(identity), address, answer).run(stop)
    if stop.is_set() and not orderly.is_set():  # the server was killed, and has left its folder
        shutil.rmtree(identity.parent, ignore_errors=True)


def _await_end(stop: threading.Event, orderly: threading.Event) -> None:
    if sys.stdin.buffer.read():  # until the pipe is closed
        orderly.set()
    stop.set()


if __name__ == "__main__":
    attend(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), dict(pin.split("=", 1) for pin in sys.argv[4:]))
