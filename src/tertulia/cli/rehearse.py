"""`tertulia rehearse 3`: the whole way of a federation of houses on this machine, with real keys and real TLS."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.errors import ConfigError
from tertulia.view import console

_NAMES = ("north", "south", "east", "west")
_METHOD = 'name = "consensus"\ntopics = 20\nrounds = 4\nvocabulary = { min_documents = 5, max_share = 0.3 }\n'
_PATIENCE = 600.0  # seconds for the run
_TICK = 0.2


def rehearse(
    parties: Annotated[int, typer.Argument(min=1, max=50, help="How many parties.", metavar="N")] = 3,
    directory: Annotated[Path, typer.Option(help="Where to put the server and all parties.")] = Path("rehearsal"),
    documents: Annotated[int, typer.Option(min=20, help="Documents for each party.")] = 300,
) -> None:
    """Rehearse a federation here: init, serve, join, approve, attend, start, each as it will be typed."""
    if directory.exists():
        raise ConfigError(f"{directory} exists: remove it, or choose another place with --directory")
    names = [_NAMES[i] if i < len(_NAMES) else f"party{i + 1}" for i in range(parties)]
    server = directory / "rehearsed"
    _run("init", server, "--members", ",".join(names), "--address", f"localhost:{_free_port()}")
    file = server / "federation.toml"
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition("[method]")
    file.write_text(f"{head}[method]\n{_METHOD}\n[text]{rest.partition('[text]')[2]}", encoding="utf-8")
    _cut_documents(directory, names, documents)
    with _children() as begin:
        begin("serve", server)
        _wait(lambda: (server / "status.json").exists(), "the server", 60.0)
        for name in names:
            place = directory / name
            invitation = server / "invitations" / f"{name}.invite"
            _run("join", invitation, "--directory", place, "--documents", directory / f"{name}.jsonl")
        for name in names:
            _run("approve", directory / name, "--yes", quiet=True)
            begin("attend", directory / name)
        _run("start", server)
        state = _wait_for_run(server)
    if state["run"]["state"] != "finished":
        raise ConfigError(f"the rehearsal has stopped: {state['run']['text']}")
    _run("status", server)
    _run("topics", Path(state["model"]).parent)
    _run("privacy", directory / names[0])
    console.line(f"everything is in {directory}: the server's directory, and one for each party")


def _cut_documents(directory: Path, names: Sequence[str], most: int) -> None:
    """Deal the demo's documents out, a file for each party."""
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
    """Type a command."""
    console.line(f"$ tertulia {' '.join(map(str, arguments))}")
    done = subprocess.run(_command(*arguments), stdout=subprocess.PIPE if quiet else None, check=False)
    if done.returncode:
        raise ConfigError(f"`tertulia {arguments[0]}` has failed, see above")


@contextmanager
def _children() -> Iterator[Callable[..., None]]:
    """Commands that stay; all of them are ended at the end, whatever happens."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: object) -> None:
        console.line(f"$ tertulia {' '.join(map(str, arguments))} &")
        running.append(subprocess.Popen(_command(*arguments)))

    try:
        yield begin
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(ready: Callable[[], bool], what: str, patience: float) -> None:
    until = time.monotonic() + patience
    while not ready():
        if time.monotonic() > until:
            raise ConfigError(f"{what} is not ready after {patience:.0f} seconds: see above")
        time.sleep(_TICK)


def _wait_for_run(server: Path) -> dict[str, Any]:
    """How the run has ended."""
    from tertulia.runs.federations import Federation
    from tertulia.runs.serving import status_of

    found: dict[str, Any] = {}

    def ended() -> bool:
        found.update(status_of(Federation(server)))
        return found["run"] is not None and found["run"]["state"] in ("finished", "stopped")

    _wait(ended, "the run", _PATIENCE)
    return found


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])
