"""Runs in processes of their own, that may be killed.

A `Nursery` is one process that has imported the package and forks a child for each `tertulia resume`: a child is a
process like any other, and costs milliseconds instead of the seconds that imports take.
"""

import json
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

from helpers import faults
from helpers.forker import Forker, serve, type_command
from tertulia._locks import is_held

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


class Nursery(Forker):
    """Forks children on demand, one question at a time."""

    def __init__(self, directory):
        super().__init__("helpers.processes")
        self.directory, self.children = Path(directory), 0

    def resume(self, directory, fault=None) -> Child:
        """Go on with a run; `fault`, such as `party.after_save:3:/some/marker`, kills at that point."""
        self.children += 1
        errors = str(self.directory / f"errors-{self.children}")
        return Child(self, self.ask({"resume": str(directory), "fault": fault, "errors": errors}), errors)

    def finish(self, directory) -> None:
        """Go on with a run to its end."""
        child = self.resume(directory)
        assert child.wait() == 0, child.errors


def party_pids(run) -> dict[str, int]:
    """The processes that work on a run's parties now, by the parties' locks."""
    homes = [home for home in sorted((Path(run) / "parties").iterdir()) if is_held(home)]
    notes = {home.name: (home / "lock").read_text() for home in homes}
    return {name: json.loads(note)["pid"] for name, note in notes.items() if note}


def kill_a_party(run, moments: random.Random) -> None:
    """Kill one of the processes of a run's parties, if any has started."""
    if pids := party_pids(run):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(moments.choice(list(pids.values())), signal.SIGKILL)


def _child(question) -> int:
    """What a child does: the command, as if it had been typed."""
    nothing, errors = os.open(os.devnull, os.O_RDWR), os.open(question["errors"], os.O_WRONLY | os.O_CREAT)
    for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(source, target)
    if question["fault"]:
        os.environ["TERTULIA_FAULT"] = question["fault"]  # party processes look here, see `sitecustomize`
        faults.arm_from(question["fault"])
    signal.alarm(PATIENCE)  # ends in any case
    own = json.loads((Path(question["resume"]) / "run.json").read_text())["config"]["method"].get("module")
    return type_command(["resume", question["resume"], "--json", *(["--method", own] if own else [])])


if __name__ == "__main__":
    serve(("polars", "tertulia.cli.main", "tertulia.runs.driver", *MODULES), _child)
