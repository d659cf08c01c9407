"""Arguments and options that several commands share, and the small functions that handle them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tertulia.errors import ConfigError
from tertulia.view import console

ConfigFile = Annotated[Path, typer.Argument(help="Settings of the run, a TOML file.", metavar="CONFIG.toml")]
RunPath = Annotated[Path, typer.Argument(help="Directory of a run.", metavar="RUN")]
ModelPath = Annotated[Path, typer.Argument(help="Directory of a model, a run or a party.", metavar="MODEL")]
PartyPath = Annotated[Path, typer.Argument(help="Directory of a party.", metavar="PARTY")]
FederationPath = Annotated[Path, typer.Argument(help="Directory of a federation.", metavar="FEDERATION")]
HomePath = Annotated[Path, typer.Argument(help="Home of a party, or the party's directory in a run.", metavar="HOME")]
Member = Annotated[str, typer.Argument(help="Name of the party.", metavar="MEMBER")]
Files = Annotated[list[str], typer.Argument(help="Files or folders of documents.", metavar="FILE...")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Delta = Annotated[float, typer.Option(help="Delta at which epsilon is computed.")]
Documents = Annotated[Path | None, typer.Option(help="File or folder of the party's documents.")]
Days = Annotated[float, typer.Option(min=0.01, help="Days until an invitation expires.")]
Metrics = Annotated[
    int | None, typer.Option(metavar="PORT", help="Serve /healthz and /metrics on this local port; 0: any free port.")
]
Live = Annotated[
    str | None,
    typer.Option(
        "--live",
        metavar="[=[HOST:]PORT]",
        help="Serve a live status page. At an address other than this machine's, it requires a token.",
    ),
]


class LiveCommand(TyperCommand):
    """A command whose option `--live` needs no value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; only `--live=ADDRESS` gives an address."""
        return super().parse_args(ctx, ["--live=" if word == "--live" else word for word in args])


@contextmanager
def live_status(directory: Path, live: str | None) -> Iterator[None]:
    """Serve the live page of a directory while the block runs; do nothing without `--live`."""
    if live is None:
        yield
        return
    from tertulia.view.pages.live import live_page
    from tertulia.view.watch import monitor

    with live_page(monitor(directory), live) as address:
        console.say(f"live page: {address}")
        if address is not None and "?token=" in address:
            console.say(
                "who has this address can read the page; it is not encrypted: use a tunnel, or a proxy with TLS"
            )
        yield


def next_steps(*commands: str) -> None:
    """Print the commands to type next."""
    for i, command in enumerate(commands):
        console.line(f"{'next: ' if i == 0 else '      '}{command}")


def say_metrics_address(port: int | None) -> None:
    """Print the address of the metrics, if they are served."""
    if port is not None:
        console.say(f"http://127.0.0.1:{port}/metrics and /healthz, for this machine alone")


Text = Annotated[str, typer.Option("--column", "--text", help="Column with the text.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text files, such as cp1252; guessed if not given.")]
Separator = Annotated[
    str | None, typer.Option(help="Separator of CSV fields: one character, or `tab`; guessed if not given.")
]
_READ_OPTIONS: dict[str, tuple[Any, Any]] = {
    "text": (Text, "text"), "encoding": (Encoding, None), "separator": (Separator, None),
}  # fmt: skip


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading files; the command receives them as `source`, the keywords of `corpus.read`."""

    @wraps(command)
    def run(**given: Any) -> None:
        source = {name: given.pop(name) for name in _READ_OPTIONS}
        command(**given, source=source)

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "source"]
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=usual, annotation=a) for name, (a, usual) in _READ_OPTIONS.items()]
    every = [parameter.replace(kind=kind) for parameter in own] + added
    run.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return run


# Statements of an organisation about itself, for the record of processing on the officer's page.
OPERATOR = {
    "organisation": "Which organisation operates the server, and receives what leaves?",
    "purpose": "For which purpose?",
    "legal_basis": "On which legal basis?",
    "retention": "For how long does it keep what it receives?",
}
PARTY = {
    "organisation": "Which organisation is this party?",
    "controller": "Who answers for its documents (name, address)?",
    "legal_basis": "On which legal basis does it take part?",
    "retention": "For how long does it keep its copy of the run?",
}
Statements = Annotated[
    list[str] | None,
    typer.Option("--state", help="Statement for the officer's page, once for each key.", metavar="KEY=VALUE"),
]

Sure = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]
Yes = Annotated[bool, typer.Option("--yes", help="Accept defaults without asking.")]


def confirm(question: str, undone: str, *, yes: bool) -> None:
    """Ask before a step that cannot be taken back; raise `ConfigError` if the answer is no, or if nobody can answer."""
    if yes:
        return
    try:
        agreed = typer.confirm(question)
    except typer.Abort:  # the end of the input, or Ctrl-C
        raise ConfigError(f"{undone}: nobody has answered; --yes answers beforehand") from None
    if not agreed:
        raise ConfigError(undone)


def ask_statements(questions: Mapping[str, str], given: Sequence[str] | None, *, yes: bool) -> dict[str, str]:
    """Return the given answers; ask for the others on a terminal. An empty answer is not stated."""
    found = {}
    for text in given or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if key not in questions or not equals:
            raise ConfigError(f"--state {text}: write KEY=VALUE; the keys are {', '.join(questions)}")
        found[key] = value
    if not yes and sys.stdin.isatty():
        for key, question in questions.items():
            if key not in found:
                found[key] = input(f"{question} [not stated] ").strip()
    return {key: value for key, value in found.items() if value}
