"""The processes engine: each party is an operating-system process that owns its documents and its directory.

Encoded frames travel over the process's standard input and output. A party that dies is started and asked again; its
answer log makes the repeat harmless. When the server dies, the pipe closes and the party exits.
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
_WAITING = 4  # unread answers
_PART = 1 << 24  # bytes per read


class _PartyProcess:
    """One party's process, with a thread each for reading and writing, so that a late party does not block others."""

    def __init__(self, party: PartyId, directory: Path, pins: Mapping[str, str]) -> None:
        self.party = party
        self.directory = directory
        self.pins = pins
        self._serial = 0
        self._start()

    def _start(self) -> None:
        # -P: modules are not imported from the working directory, which others may control
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
        """Read answers until the party ends or sends malformed data; always wake the caller, even on error."""
        try:
            while inbox.qsize() < _WAITING and (received := receive_or_none(pipe)) is not None:
                inbox.put(received)
        except (OSError, ValueError, MemoryError):  # the pipe was closed, or the frame is too large for this machine
            return
        finally:
            inbox.put(None)

    def _write(self, pipe: IO[bytes], outbox: SimpleQueue[tuple[int, bytes] | None]) -> None:
        """Write the newest frame whenever the party reads; drop obsolete frames that still wait."""
        while (frame := outbox.get()) is not None:
            while frame is not None and not outbox.empty():
                frame = outbox.get()
            try:
                if frame is None:
                    break
                send(pipe, *frame)
            except OSError:  # a broken pipe: `answer_or_none` starts the party again
                break
        self._hang_up(pipe)

    def send(self, frame: bytes) -> None:
        """Queue a frame; `answer_or_none` notices if the process is dead."""
        self._serial += 1
        self._outbox.put((self._serial, frame))

    def answer_or_none(self, frame: bytes, deadline: float | None) -> bytes | None:
        """Wait for the answer to the last frame; None when time is up. Late answers to earlier frames are dropped."""
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
        self._end(1)  # its pipe has ended: if the process is alive, it has sent malformed data
        self._outbox.put(None)
        self._hang_up(self._process.stdout)
        self._start()

    @staticmethod
    def _hang_up(pipe: object) -> None:
        try:
            pipe.close()  # type: ignore[attr-defined]
        except OSError:  # the buffer of a dead process cannot be flushed
            return

    def close(self) -> None:
        """End the process, after it has read the frames that it was sent."""
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

    def ask(
        self, frames: Mapping[PartyId, bytes], timeout: float | None, enough: int | None = None
    ) -> dict[PartyId, bytes]:
        """Ask all at once; return the answers that come in time."""
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
    """Read one frame; None at the end of the pipe, or for a malformed frame."""
    header = pipe.read(_FRAME.size)
    if len(header) < _FRAME.size:
        return None
    length, serial = _FRAME.unpack(header)
    if length > MOST_BYTES:
        return None
    parts, left = [], length
    while left:  # memory is allocated as bytes arrive, not by the header
        part = pipe.read(min(left, _PART))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    return serial, b"".join(parts)


def serve(directory: Path, pins: Mapping[str, str]) -> None:
    """Run a party's process: answer frames until the pipe closes."""
    from tertulia.federation.engines.party_process import host_party

    # Output of libraries must not be mixed with frames.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    with host_party(directory, pins) as answer:
        while (received := receive_or_none(sys.stdin.buffer)) is not None:
            serial, frame = received
            try:
                send(replies, serial, answer(frame))
            except OSError:  # the server has gone; the answer log keeps the answer
                return


if __name__ == "__main__":
    serve(Path(sys.argv[1]), dict(pin.split("=", 1) for pin in sys.argv[2:]))
