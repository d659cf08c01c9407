"""Commands as processes of their own, typed in a folder and answered, without the seconds that imports take."""

import os
import signal
import sys
from pathlib import Path

from helpers import faults
from helpers.forker import Forker, serve, type_command

PATIENCE = 300  # seconds that a command may take at most
MODULES = ("polars", "grpc", "tertulia.cli.main", "tertulia.network.server.service", "tertulia.network.party.attendant")
MODULES += ("tertulia.network.party.approval", "tertulia.view.dry_run", "tertulia.methods.consensus.method")


class Typed:
    """A command that was typed."""

    def __init__(self, typist, pid, files):
        self._typist, self.pid, self._files, self._code = typist, pid, files, None

    def wait(self) -> int:
        """The exit code; minus the signal that killed it."""
        if self._code is None:
            self._code = self._typist.ask({"wait": self.pid})
        return self._code

    def send_signal(self, how) -> None:
        """Send a signal; whether or not it has just ended, its number is still its own."""
        os.kill(self.pid, how)

    @property
    def out(self) -> str:
        return _read(self._files[1])

    @property
    def err(self) -> str:
        return _read(self._files[2])


def _read(file) -> str:
    """What was written so far; a process that has just begun may not have made the file yet."""
    return file.read_text() if file.exists() else ""


class Typist(Forker):
    """Types commands, one question at a time."""

    def __init__(self, directory):
        super().__init__("helpers.commands")
        self.directory, self.typed = Path(directory), []

    def type(self, *arguments, cwd, answers="", fault=None) -> Typed:
        """Type a command in a folder, with what it will be answered; `fault` kills it at a point (`helpers.faults`)."""
        files = [self.directory / f"{len(self.typed)}.{name}" for name in ("in", "out", "err")]
        files[0].write_text(answers)
        asked = {"arguments": [str(a) for a in arguments], "cwd": str(cwd), "files": [str(file) for file in files]}
        asked["fault"] = fault
        self.typed.append(Typed(self, self.ask(asked), files))
        return self.typed[-1]

    def close(self) -> None:
        """End all commands that still run."""
        for typed in self.typed:
            if typed._code is None:
                typed.send_signal(signal.SIGKILL)
                typed.wait()
        super().close()


def _child(question) -> int:
    os.chdir(question["cwd"])
    for target, (path, flags) in enumerate(
        zip(question["files"], (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)
    ):
        os.dup2(os.open(path, flags, 0o600), target)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    signal.alarm(PATIENCE)
    if question["fault"]:
        faults.arm_from(question["fault"])
    return type_command(question["arguments"])


if __name__ == "__main__":
    serve(MODULES, _child)
