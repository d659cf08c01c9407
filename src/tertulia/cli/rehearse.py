"""`tertulia rehearse 3`: rehearse a federation of organisations on this machine, with real keys and TLS."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.errors import ConfigError
from tertulia.view import console

_NAMES = ("north", "south", "east", "west")
_METHOD = 'name = "consensus"\ntopics = 20\nrounds = 4\nvocabulary = {{ {words}min_documents = 5, max_share = 0.3 }}\n'
_PATIENCE = 600.0  # seconds for the run
_TICK = 0.2
_LAST_LINES = 5  # of stderr, kept for an error text


def rehearse(
    parties: Annotated[int, typer.Argument(min=1, max=50, help="Number of parties.", metavar="N")] = 3,
    directory: Annotated[Path, typer.Option(help="Directory for the server and all parties.")] = Path("rehearsal"),
    documents: Annotated[int, typer.Option(min=20, help="Number of documents for each party.")] = 300,
) -> None:
    """Rehearse a federation on this machine: run init, serve, join, approve, attend, start and fetch as typed."""
    if directory.exists():
        raise ConfigError(f"{directory} exists: remove it, or choose another place with --directory")
    names = [_NAMES[i] if i < len(_NAMES) else f"party{i + 1}" for i in range(parties)]
    server = directory / "rehearsed"
    _run("init", server, "--members", ",".join(names), "--address", f"localhost:{_free_port()}")
    file = server / "federation.toml"
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition("[method]")
    method = _METHOD.format(words='mode = "common", ' if "\nsecure = true" in rest else "")
    file.write_text(f"{head}[method]\n{method}\n[text]{rest.partition('[text]')[2]}", encoding="utf-8")
    _cut_documents(directory, names, documents)
    with _children() as children:
        children.begin("serve", server)
        children.wait(lambda: (server / "status.json").exists(), "the server", 60.0)
        for name in names:
            place = directory / name
            invitation = server / "invitations" / f"{name}.invite"
            _run("join", invitation, "--directory", place, "--documents", directory / f"{name}.jsonl")
        for name in names:
            _run("approve", directory / name, "--yes", quiet=True)
            children.begin("attend", directory / name)
        _run("start", server)
        state = _wait_for_run(server, children)
        if state["run"]["state"] == "finished":
            _run("fetch", directory / names[0])
    if state["run"]["state"] != "finished":
        raise ConfigError(f"the rehearsal has stopped: {state['run']['text']}")
    _run("status", server)
    _run("topics", directory / names[0] / "runs" / state["run"]["id"])
    _run("privacy", directory / names[0])
    console.line(f"everything is in {directory}: the server's directory, and one for each party")


def _cut_documents(directory: Path, names: Sequence[str], most: int) -> None:
    """Distribute the documents of the demo, one file for each party."""
    from tertulia.corpus.demo_corpus import PARTIES, docstrings

    console.say("collecting the docstrings of Python, NumPy and SciPy ...")
    every = [docstrings(package) for package in PARTIES]
    for i, name in enumerate(names):
        own = every[i % len(every)][i // len(every) :: -(-len(names) // len(every))][:most]
        lines = [json.dumps({"id": key, "text": text}) for key, text in own]
        (directory / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-P", "-m", "tertulia", *map(str, arguments)]


def _run(*arguments: object, quiet: bool = False) -> None:
    """Print and run a command."""
    console.line(f"$ tertulia {' '.join(map(str, arguments))}")
    stdout = subprocess.PIPE if quiet else None
    done = subprocess.run(_command(*arguments), stdin=subprocess.DEVNULL, stdout=stdout, check=False)
    if done.returncode:
        raise ConfigError(f"`tertulia {arguments[0]}` has failed, see above")


class _Child:
    """A background command; its stderr is printed here, and its last lines are kept for an error text."""

    def __init__(self, arguments: Sequence[object]) -> None:
        self._name = f"tertulia {' '.join(map(str, arguments))}"
        console.line(f"$ {self._name} &")
        self.process = subprocess.Popen(_command(*arguments), stderr=subprocess.PIPE, text=True, errors="replace")
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self._last.append(line.rstrip("\n"))
                console.say(self._last[-1])

    def check(self) -> None:
        """Raise an error if the command has ended."""
        if self.process.poll() is not None:
            self._reader.join(_TICK)
            said = "\n".join(["", *self._last]) if self._last else " nothing"
            raise ConfigError(
                f"`{self._name}` has ended by itself ({_ending(self.process.returncode)}). It said:{said}"
            )

    def end(self) -> None:
        """Wait for the end; kill the command after 30 seconds."""
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(_TICK)


def _ending(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class _Children:
    """All background commands."""

    def __init__(self) -> None:
        self.running: list[_Child] = []

    def begin(self, *arguments: object) -> None:
        """Print a command and start it in the background."""
        self.running.append(_Child(arguments))

    def wait(self, ready: Callable[[], bool], what: str, patience: float) -> None:
        """Wait until something is ready; raise an error if a command has ended, or after `patience` seconds."""
        until = time.monotonic() + patience
        while not ready():
            for child in self.running:
                child.check()
            if time.monotonic() > until:
                raise ConfigError(f"{what} is not ready after {patience:.0f} seconds: see above")
            time.sleep(_TICK)


@contextmanager
def _children() -> Iterator[_Children]:
    """Terminate all background commands at the end of the block, even on error."""
    children = _Children()
    try:
        yield children
    finally:
        for child in reversed(children.running):
            child.process.terminate()
        for child in children.running:
            child.end()


def _wait_for_run(server: Path, children: _Children) -> dict[str, Any]:
    """Wait for the end of the run and return its status."""
    from tertulia.network.server.federation_directory import FederationDirectory
    from tertulia.network.server.service import status_of

    found: dict[str, Any] = {}

    def ended() -> bool:
        found.update(status_of(FederationDirectory(server)))
        return found["run"] is not None and found["run"]["state"] in ("finished", "stopped")

    children.wait(ended, "the run", _PATIENCE)
    return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
