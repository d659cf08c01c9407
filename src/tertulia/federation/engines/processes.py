"""The processes engine: each party an operating-system process that owns its documents and its directory.

Nothing crosses but encoded frames, over the process's standard input and output. A party that dies is started again
and asked again; its answer log makes the repeat harmless. When the server dies, the pipe closes and the party ends.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from tertulia.federation.codec import encode
from tertulia.federation.engines.base import MOST_BYTES, EngineSetup, environment
from tertulia.federation.messages import Answer
from tertulia.federation.types import PartyId

_FRAME = struct.Struct("<QQ")  # length, serial number
_RESTARTS = 5  # in a row, for one question
_WAITING = 4  # answers that nobody has asked for
_PART = 1 << 24  # bytes that are read at a time


class _PartyProcess:
    """One party's process, with a thread that reads from it and one that writes: a late party must not stop others."""

    def __init__(self, party: PartyId, directory: Path, pins: Mapping[str, str]) -> None:
        self.party = party
        self.directory = directory
        self.pins = pins
        self._serial = 0
        self._start()

    def _start(self) -> None:
        # -P: modules are not looked for in the working directory, which may be anybody's
        command = [sys.executable, "-P", "-m", "tertulia.federation.engines.processes", str(self.directory)]
        command += [f"{module}={pin}" for module, pin in self.pins.items()]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(self.pins),
            process_group=0,  # Ctrl-C is for the server, which then closes the pipe
        )
        self._inbox: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        self._outbox: SimpleQueue[tuple[int, bytes] | None] = SimpleQueue()
        threading.Thread(target=self._read, args=(self._process.stdout, self._inbox), daemon=True).start()
        threading.Thread(target=self._write, args=(self._process.stdin, self._outbox), daemon=True).start()

    @staticmethod
    def _read(pipe: IO[bytes], inbox: SimpleQueue[tuple[int, bytes] | None]) -> None:
        """Read until the party ends, or sends what no party would; whatever happens, who waits is not left waiting."""
        try:
            while inbox.qsize() < _WAITING and (received := receive_or_none(pipe)) is not None:
                inbox.put(received)
        except (OSError, ValueError, MemoryError):  # the pipe was closed, or the frame is too large for this machine
            return
        finally:
            inbox.put(None)

    def _write(self, pipe: IO[bytes], outbox: SimpleQueue[tuple[int, bytes] | None]) -> None:
        """Write the newest frame whenever the party reads; older ones that still wait are past their time."""
        while (frame := outbox.get()) is not None:
            while frame is not None and not outbox.empty():
                frame = outbox.get()
            try:
                if frame is None:
                    break
                send(pipe, *frame)
            except OSError:  # a broken pipe: `answer_or_none` will start the party again
                break
        self._hang_up(pipe)

    def send(self, frame: bytes) -> None:
        """Send a frame; that the process is dead shows when its answer is awaited."""
        self._serial += 1
        self._outbox.put((self._serial, frame))

    def answer_or_none(self, frame: bytes, deadline: float | None) -> bytes | None:
        """The answer to the frame sent last, or None when time is up; late answers to earlier ones are dropped."""
        restarts = 0
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                received = self._inbox.get(timeout=left)
            except Empty:
                return None
            if received is None:
                restarts += 1
                if restarts > _RESTARTS:
                    return encode(Answer("failed", f"it died {restarts} times over one question: see its log", None))
                self._restart()
                self.send(frame)
            elif received[0] == self._serial:
                return received[1]

    def _restart(self) -> None:
        self._end(1)  # its pipe has ended: if it lives, it has sent what cannot be read
        self._outbox.put(None)
        self._hang_up(self._process.stdout)
        self._start()

    @staticmethod
    def _hang_up(pipe: object) -> None:
        try:
            pipe.close()  # type: ignore[attr-defined]
        except OSError:  # what was still buffered for a dead process cannot be delivered
            return

    def close(self) -> None:
        """End the process, once it has read what it was sent."""
        self._outbox.put(None)
        self._end(10)
        self._hang_up(self._process.stdout)

    def _end(self, patience: float) -> None:
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ProcessTransport:
    """Carries frames to party processes."""

    def __init__(self, directories: Mapping[PartyId, Path], pins: Mapping[str, str] | None = None) -> None:
        self._processes = {party: _PartyProcess(party, path, pins or {}) for party, path in directories.items()}

    @property
    def parties(self) -> list[PartyId]:
        """The parties in the order in which they were given."""
        return list(self._processes)

    def ask(self, frames: Mapping[PartyId, bytes], timeout: float | None) -> dict[PartyId, bytes]:
        """Ask all at once, then gather what comes in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for party, frame in frames.items():
            self._processes[party].send(frame)
        answers = {party: self._processes[party].answer_or_none(frame, deadline) for party, frame in frames.items()}
        return {party: answer for party, answer in answers.items() if answer is not None}

    def close(self) -> None:
        """End all processes."""
        for process in self._processes.values():
            process.close()


def start(setup: EngineSetup) -> ProcessTransport:
    """Start a process for every party."""
    return ProcessTransport(setup.directories, setup.pins)


def send(pipe: IO[bytes], serial: int, frame: bytes) -> None:
    """Write one frame."""
    pipe.write(_FRAME.pack(len(frame), serial))
    pipe.write(frame)
    pipe.flush()


def receive_or_none(pipe: IO[bytes]) -> tuple[int, bytes] | None:
    """Read one frame; None at the end of the pipe, or where what follows cannot be a frame."""
    header = pipe.read(_FRAME.size)
    if len(header) < _FRAME.size:
        return None
    length, serial = _FRAME.unpack(header)
    if length > MOST_BYTES:
        return None
    parts, left = [], length
    while left:  # memory is taken as bytes come, not as a header says
        part = pipe.read(min(left, _PART))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return serial, b"".join(parts)


def serve(directory: Path, pins: Mapping[str, str]) -> None:
    """What a party's process does: answer what it is asked until the pipe closes."""
    from tertulia.federation.engines.hosting import hosted

    # Whatever a library prints must not end up among the frames.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    with hosted(directory, pins) as answer:
        while (received := receive_or_none(sys.stdin.buffer)) is not None:
            serial, frame = received
            try:
                send(replies, serial, answer(frame))
            except BrokenPipeError:  # the server is gone: the answer is in the log, should it be asked for again
                return


if __name__ == "__main__":
    serve(Path(sys.argv[1]), dict(pin.split("=", 1) for pin in sys.argv[2:]))
