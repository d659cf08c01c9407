"""Commands as processes of their own, without the seconds that imports take: one process imports, and forks for each.

What is forked is a process like any other: it has its own standard files, can be killed, and has an exit code.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path

PATIENCE = 300  # seconds that a command may take, whatever happens
MODULES = ("polars", "grpc", "tertulia.cli.main", "tertulia.runs.serving", "tertulia.runs.attending")
MODULES += ("tertulia.runs.approving", "tertulia.view.dry_run", "tertulia.methods.consensus.method")


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


class Typist:
    """Types commands, one question at a time."""

    def __init__(self, directory):
        self.directory, self.typed = Path(directory), []
        command = [sys.executable, "-m", "helpers.commands"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def type(self, *arguments, cwd, answers="") -> Typed:
        """Type a command in a folder, with what it will be answered."""
        files = [self.directory / f"{len(self.typed)}.{name}" for name in ("in", "out", "err")]
        files[0].write_text(answers)
        asked = {"arguments": [str(a) for a in arguments], "cwd": str(cwd), "files": [str(file) for file in files]}
        self.typed.append(Typed(self, self.ask(asked), files))
        return self.typed[-1]

    def close(self) -> None:
        """End whatever still runs."""
        for typed in self.typed:
            if typed._code is None:
                typed.send_signal(signal.SIGKILL)
                typed.wait()
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def _child(question) -> int:
    from tertulia.cli.main import main

    os.chdir(question["cwd"])
    for target, (path, flags) in enumerate(
        zip(question["files"], (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT), strict=True)
    ):
        os.dup2(os.open(path, flags, 0o600), target)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process lives
    signal.alarm(PATIENCE)
    sys.argv = ["tertulia", *question["arguments"]]
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def _serve() -> None:
    for name in MODULES:
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        elif (answer := os.fork()) == 0:
            code = 1
            try:
                code = _child(question)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
