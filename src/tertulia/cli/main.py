"""The application: every command in its help panel, and the options that precede a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tertulia import __version__
from tertulia.cli import audit, init, installation, model, nvflare, operator, party, privacy, rehearse, run, train, warm
from tertulia.cli.options import LiveCommand
from tertulia.cli.process import Commands, verbosity
from tertulia.view import console

app = typer.Typer(
    help="Federated topic modelling: one topic model from documents that never leave their owners.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_OPERATOR, _PRIVACY = "A federation: the operator", "Privacy"
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "On one machine": (run.demo, train.train, init.init, run.check, run.run, run.resume, run.scenarios, run.compare),
    "Models and pages": (
        *(model.topics, model.explore, model.report, model.transform, model.evaluate, model.drift),
        model.words,
    ),
    _OPERATOR: (
        *(rehearse.rehearse, operator.invite, operator.serve, operator.start, operator.status),
        operator.revoke,
    ),
    "A federation: a party": (
        *(party.join, party.approver, party.approve, party.attend, party.fetch, party.leave, party.forget),
        party.withdraw,
    ),
    _PRIVACY: (privacy.policy, privacy.disclosures, privacy.privacy, audit.audit),
    "This installation": (installation.doctor, warm.warm, installation.upgrade, installation.completion),
}
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(cls=LiveCommand, rich_help_panel=_panel)(_command)
app.add_typer(privacy.ledger, name="ledger", rich_help_panel=_PRIVACY)
app.add_typer(nvflare.app, name="nvflare", rich_help_panel=_OPERATOR)


def _print_version(given: bool) -> None:
    if given:
        console.line(f"tertulia {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print log messages and the traceback of an error.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")] = False,
) -> None:
    """Handle the options that precede a command."""
    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet contradict each other: leave one out")
    context.with_resource(verbosity(verbose, quiet))


def main() -> None:
    """Run the command line; an error is one line and exit code 1, never a traceback."""
    app()
