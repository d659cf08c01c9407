"""The network engine alone: fifty parties at once, a party that is killed, and a link that is idle for an hour."""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from benchmarks.common import peak_mb, reset_peak, say
from benchmarks.engines import echo
from benchmarks.engines.fixtures import kill_a_party
from benchmarks.engines.rates import echo_run
from tertulia.federation.engines.grpc.client import enrol
from tertulia.federation.engines.grpc.party_session import PartySession
from tertulia.federation.engines.grpc.service import Service
from tertulia.federation.identity.authority import Authority
from tertulia.federation.identity.members import Members
from tertulia.federation.identity.party_identity import Identity
from tertulia.federation.party.host import PartyHost
from tertulia.federation.server.handle import Handle
from tertulia.runs.directory import drive

_MANY = 50
_LOOPBACK = "127.0.0.1"


class NoBackend:
    """A backend without runs: parties here have nothing to approve."""

    def proposal(self) -> bytes:
        """Return an empty proposal."""
        return b""

    def approve(self, member: str, approval: bytes) -> bytes:
        """Accept, and answer nothing."""
        return b""

    def leave(self, member: str) -> None:
        """Do nothing."""

    def model(self, member: str, run: str) -> bytes:
        """Return an empty model."""
        return b""

    def news(self, member: str) -> bytes:
        """Return empty news."""
        return b"{}"


class Net:
    """A service on this machine, and members that have joined it with certificates of their own."""

    def __init__(self, folder: Path, members: list[str], host: str = _LOOPBACK) -> None:
        self.events: list[tuple[float, str, str]] = []
        self._authority = Authority.create(folder / "authority", "benchmark")
        self._register = Members(folder)
        self._register.add(members)
        self.service = Service(self._authority, self._register, NoBackend(), f"{host}:0", self._note)
        self.address = f"{host}:{self.service.start()}"
        self.identities = {name: self._join(folder / "members" / name, name) for name in members}

    def _note(self, kind: str, facts: Any) -> None:
        self.events.append((time.monotonic(), kind, str(facts.get("name", ""))))

    def _join(self, directory: Path, name: str) -> Identity:
        invitation = self._authority.invite(name, self.address, "benchmark", 1)
        self._register.note_invitation(name, invitation.serial, invitation.expires)
        return enrol(invitation, directory)

    def wait_for_all(self, patience: float = 60) -> None:
        """Wait until all members are connected."""
        end = time.monotonic() + patience
        while len(self.service.connected) < len(self.identities):
            if time.monotonic() > end:
                raise SystemExit(f"only {len(self.service.connected)} of {len(self.identities)} parties have connected")
            time.sleep(0.05)


def parties_50(quick: bool) -> dict[str, Any]:
    """Let fifty parties, each with its own stream and directory, exchange 100 kB each way."""
    rounds = 5 if quick else 20
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        run = echo_run(Path(folder) / "run", "local", _MANY, 100_000, rounds + 2)
        net = Net(Path(folder) / "net", list(run.parties))
        stack.callback(net.service.stop)
        stop = threading.Event()
        stack.callback(stop.set)
        reset_peak()
        for name, identity in net.identities.items():
            session = PartySession(identity, net.address, PartyHost(run.party_directory(name)).answer)
            threading.Thread(target=session.run, args=(stop,), daemon=True).start()
        net.wait_for_all()
        handle = Handle(run.id, net.service.transport(run.parties), run.journal())
        seconds = drive(handle, echo.train, run.config["method"]["config"]).seconds[2:]
    found = {"seconds_per_round": round(statistics.median(seconds), 3), "rss_mb": round(peak_mb())}
    say(f"fifty parties: {found}")
    return found


def recovery(engines: list[str]) -> dict[str, float]:
    """Measure the seconds that a killed party adds to a round: medians of three."""
    return {engine: _recovery(engine) for engine in engines if engine != "local"}


def _recovery(engine: str) -> float:
    took = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            run = echo_run(Path(folder) / "run", engine, 3, 80, 12)
            with closing(run.transport(engine, 3)) as transport:

                def observe(kind: str, facts: Any, directory: Path = run.directory) -> None:
                    if kind == "round" and facts["round"] == 6:
                        kill_a_party(directory, random.Random(0))

                handle = Handle(run.id, transport, run.journal(), observe=observe)
                seconds = drive(handle, echo.train, run.config["method"]["config"]).seconds
            took.append(seconds[6] - statistics.median(seconds[2:6]))
    say(f"{engine}: a killed party costs {statistics.median(took):.2f} s")
    return round(float(statistics.median(took)), 2)


def soak(minutes: float) -> dict[str, Any]:
    """Ask one question over a link after minutes of silence: how often it broke, and whether the answer came."""
    return _one_question(idle=minutes, step=0)


def long_step(minutes: float) -> dict[str, Any]:
    """Run a step for minutes, while its link carries only pings."""
    return _one_question(idle=0, step=minutes)


def _one_question(idle: float, step: float) -> dict[str, Any]:
    """Ask one question after minutes of silence, to a party that works on it for minutes."""

    def answer(frame: bytes) -> bytes:
        time.sleep(step * 60)
        return frame[::-1]

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        net = Net(Path(folder), ["north"])
        stack.callback(net.service.stop)
        stop = threading.Event()
        stack.callback(stop.set)
        session = PartySession(net.identities["north"], net.address, answer)
        threading.Thread(target=session.run, args=(stop,), daemon=True).start()
        net.wait_for_all()
        say(f"a link is idle for {idle:g} minutes, then a step takes {step:g}")
        time.sleep(idle * 60)
        answers = net.service.transport(["north"]).ask({"north": b"abc"}, step * 60 + 30)
        reconnects = sum(kind == "connected" for _, kind, _ in net.events) - 1
    return {"minutes": idle + step, "reconnects": reconnects, "lost": int(answers != {"north": b"cba"})}
