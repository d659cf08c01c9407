"""One process that has imported the package and forks a child for each question: imports take seconds, forks do not.

What is forked is a process like any other: it has its own standard files, can be killed, and has an exit code.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable

PATIENCE = 300  # seconds for the end


class Forker:
    """Asks such a process, one question at a time."""

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-m", module]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, question):
        """A child's number for a question; for `{"wait": number}` its exit code, minus the signal that killed it."""
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def serve(modules: Iterable[str], child: Callable[[dict], int]) -> None:
    """What the process does: import, then fork for each question; `child` answers it, and gives its exit code."""
    for name in modules:
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        elif (answer := os.fork()) == 0:
            code = 1
            try:
                code = child(question)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(json.dumps(answer), flush=True)


def type_command(arguments: list[str]) -> int:
    """Run a command as if it had been typed; its exit code."""
    from tertulia.cli.main import main

    sys.argv = ["tertulia", *arguments]
    try:
        main()
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0
