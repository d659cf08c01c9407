"""Runs in processes of their own, that may be killed.

A `Nursery` is one process that has imported the package and forks a child for each `tertulia resume`: a child is a
process like any other, and costs milliseconds instead of the seconds that imports take.
"""

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import traceback
from pathlib import Path

from helpers import faults

PATIENCE = 120  # seconds
MODULES = [f"tertulia.methods.{name}.method" for name in ("ftm", "gfedntm", "pctd")]


class Child:
    """A forked `tertulia resume`."""

    def __init__(self, nursery, pid, errors):
        self.nursery, self.pid, self._errors = nursery, pid, errors

    def wait(self) -> int:
        """The exit code; minus the signal that killed it."""
        return self.nursery.ask({"wait": self.pid})

    def kill(self) -> None:
        """`kill -9`; whether or not it has just ended, the nursery still knows it by its number."""
        os.kill(self.pid, signal.SIGKILL)

    @property
    def errors(self) -> str:
        """What it wrote to stderr."""
        return Path(self._errors).read_text()


class Nursery:
    """Forks children on demand, one question at a time."""

    def __init__(self, directory):
        self.directory, self.children = Path(directory), 0
        command = [sys.executable, "-m", "helpers.processes"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def resume(self, directory, fault=None) -> Child:
        """Go on with a run; `fault`, such as `party.after_save:3:/some/marker`, kills at that point."""
        self.children += 1
        errors = str(self.directory / f"errors-{self.children}")
        return Child(self, self.ask({"resume": str(directory), "fault": fault, "errors": errors}), errors)

    def finish(self, directory) -> None:
        """Go on with a run to its end."""
        child = self.resume(directory)
        assert child.wait() == 0, child.errors

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def kill_a_party(server: int, moments: random.Random) -> None:
    """Kill one of a server's party processes, if it has started any."""
    children = subprocess.run(["pgrep", "-P", str(server)], capture_output=True, text=True).stdout.split()
    if children:
        os.kill(int(moments.choice(children)), signal.SIGKILL)


def _child(question) -> int:
    """What a child does: the command, as if it had been typed."""
    from tertulia.cli.main import main

    nothing, errors = os.open(os.devnull, os.O_RDWR), os.open(question["errors"], os.O_WRONLY | os.O_CREAT)
    for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(source, target)
    if question["fault"]:
        os.environ["TERTULIA_FAULT"] = question["fault"]  # party processes look here, see `sitecustomize`
        faults.arm_from(question["fault"])
    signal.alarm(PATIENCE)  # whatever happens, it does not stay
    own = json.loads((Path(question["resume"]) / "run.json").read_text())["config"]["method"].get("module")
    sys.argv = ["tertulia", "resume", question["resume"], "--json", *(["--method", own] if own else [])]
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def _serve() -> None:
    for name in ("polars", "tertulia.cli.main", "tertulia.runs.driver", *MODULES):  # so that no child need import them
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
                sys.stderr.flush()
                os._exit(code)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
