"""The command line: each command a few lines over the API. `--json` speaks to machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia import __version__
from tertulia.cli import (
    completion,
    doctor,
    explore,
    federation,
    init,
    ledger,
    machine,
    models,
    nvflare,
    party,
    rehearse,
    report,
    running,
    upgrade,
    warm,
    words,
)
from tertulia.cli.ending import REFUSED, Commands
from tertulia.cli.live import Live, LiveCommand, showing
from tertulia.cli.speaking import speak
from tertulia.view import console

app = typer.Typer(
    help="Federated topic modelling: one topic model from documents that never leave their owners.",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
HERE, MODELS = "On one machine", "Models and pages"
SERVER, PARTY = "A federation: the operator", "A federation: a party"
PRIVACY, CARE = "What left, and what it costs", "This installation"
for _panel, _commands in {
    HERE: (init.init, running.run, running.resume),
    MODELS: (
        *(models.topics, explore.explore, report.report, models.transform, models.evaluate, models.drift),
        words.words,
    ),
    SERVER: (
        *(rehearse.rehearse, federation.invite, federation.serve, federation.start, federation.status),
        federation.revoke,
    ),
    PARTY: (party.join, party.approve, party.attend, party.fetch, party.leave, party.forget),
    CARE: (doctor.doctor, warm.warm, upgrade.upgrade, completion.completion),
}.items():
    for _command in _commands:
        app.command(cls=LiveCommand, rich_help_panel=_panel)(_command)
app.add_typer(ledger.app, name="ledger", rich_help_panel=PRIVACY)
app.add_typer(nvflare.app, name="nvflare", rich_help_panel=SERVER)
ConfigFile = Annotated[Path, typer.Argument(help="The run's settings, a TOML file.", metavar="CONFIG.toml")]
RunDirectory = Annotated[Path, typer.Argument(help="A run's directory.", metavar="RUN")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def _print_version(asked: bool) -> None:
    if asked:
        console.line(f"tertulia {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more: what is logged, where errors are.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but results and errors.")] = False,
) -> None:
    """Take what stands before a command."""
    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet contradict each other: leave one out")
    context.with_resource(speak(verbose, quiet))


@app.command(cls=LiveCommand, rich_help_panel=HERE)
def demo(
    directory: Annotated[Path, typer.Option(help="Where to put the run.")] = Path("runs/demo"),
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Eight teams, which share the docstrings of Python, NumPy and SciPy, train one topic model."""
    from tertulia.cli.demo import run_demo

    with showing(directory, live):
        run_demo(directory, as_json)


@app.command(cls=LiveCommand, rich_help_panel=HERE)
def scenarios(
    config: ConfigFile,
    directory: Annotated[Path | None, typer.Option(help="Instead of the config's `directory`.")] = None,
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Train federated, with all documents in one place, and each party alone, beside controls; score on everybody's."""
    from tertulia.runs import config as configuration
    from tertulia.runs.scenarios import compare

    settings = configuration.load(config)
    if directory is not None:
        settings = settings.replace(directory=str(directory))
    with showing(Path(settings.directory), live):
        rows = compare(settings, console.say)
    if as_json:
        console.print_json({"scenarios": rows})
        return
    shown = [{name: value for name, value in row.items() if name != "parties"} for row in rows]
    console.records(f"Scenarios in {settings.directory}", shown)
    if len(rows[0]["parties"]) <= 6:  # else the report has them
        own = [{"scenario": row["scenario"], **row["parties"]} for row in rows]
        console.records("Perplexity on each party's own documents", own)
    console.say(f"a page of all this: `tertulia report {settings.directory}`")


@app.command(rich_help_panel=HERE)
def compare(
    directory: RunDirectory,
    groups: Annotated[
        list[str] | None, typer.Option("--group", help="NAME=PARTY,PARTY: use only sums over groups.")
    ] = None,
    by: Annotated[str | None, typer.Option(help="month, quarter or year: a table over time.")] = None,
    between: Annotated[
        tuple[str, str] | None, typer.Option(help="Dates in the first and last period.", metavar="SINCE UNTIL")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Add noise that keeps this for a document.")] = None,
    dry: Annotated[bool, typer.Option("--check", help="Only say what would leave, and what policies say.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write CSV files to this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the parties of a finished run: which works on what. It is a run of its own, RUN-compared."""
    from tertulia.cli.compare import compare_run, dry_run_of_comparison, groups_of

    since, until = between or (None, None)
    given = {"groups": groups_of(groups or []), "by": by, "since": since, "until": until, "epsilon": epsilon}
    if dry:
        _show_dry_run(dry_run_of_comparison(directory, given), as_json)
        return
    found = compare_run(directory, output, given)
    if as_json:
        console.print_json(machine.comparison_of(found))
    else:
        console.records("Share of each topic in a party's documents", found["prevalence"])
        console.records("How alike parties are", found["similarity"])


@app.command(rich_help_panel=HERE)
def check(
    config: Annotated[Path, typer.Argument(help="A run's settings, or a party's directory.", metavar="CONFIG.toml")],
    as_json: AsJson = False,
) -> None:
    """Dry run: what would be read, trained and disclosed, and what each party's policy says to it."""
    from tertulia.runs import config as configuration
    from tertulia.view.dry_run import dry_run

    if config.is_dir():
        _show_dry_run(party.check_party(config), as_json)
        return
    _show_dry_run(dry_run(configuration.load(config)), as_json)


@app.command(rich_help_panel=PRIVACY)
def policy(
    path: Annotated[Path, typer.Argument(help="Where to write it.", metavar="FILE")] = Path("policy.toml"),
    strict: Annotated[bool, typer.Option("--strict/--open", help="Nothing leaves in the clear; or all may.")] = True,
) -> None:
    """Write a commented policy file for a party to edit."""
    from tertulia.privacy.policy import write_example

    console.say(write_example(path, strict=strict))


def _show_dry_run(report: Mapping[str, Any], as_json: bool) -> None:
    """Print what would leave; exit code 3 if a policy forbids some of it."""
    if as_json:
        console.print_json(machine.dry_run_of(report))
    else:
        console.print_dry_run(report)
    if any(row["verdict"] != "allowed" for row in report["disclosed"]):
        raise typer.Exit(REFUSED)


@app.command(rich_help_panel=PRIVACY)
def disclosures(
    directory: RunDirectory,
    every: Annotated[bool, typer.Option("--all", help="Every release in a row of its own.")] = False,
    as_json: AsJson = False,
) -> None:
    """What left each party: in which round, how many bytes, under which mechanism."""
    from tertulia.runs.layout import Run
    from tertulia.view.tables import disclosure_rows, grouped, readers

    rows = disclosure_rows(Run.open(directory))
    if as_json or every:
        _show("disclosures", f"What left each party of {directory}", rows, as_json)
        return
    console.records(f"What left each party of {directory} (--all lists every release)", grouped(rows))
    for text in readers(rows):
        console.show(text)


@app.command(rich_help_panel=PRIVACY)
def privacy(
    directory: Annotated[Path, typer.Argument(help="A run's directory, or a party's.", metavar="RUN")],
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is computed.")] = 1e-6,
    every: Annotated[bool, typer.Option("--all", help="Every thing, and every release.")] = False,
    as_json: AsJson = False,
) -> None:
    """What left each party, in a sentence, and what it costs a word, a document, a user."""
    from tertulia.cli.privacy import print_privacy

    print_privacy(directory, delta, every, as_json)


def _show(key: str, title: str, rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print rows, as JSON under a key or as a table."""
    if as_json:
        console.print_json({key: machine.rows_of(rows)})
    else:
        console.records(title, rows)


def main() -> None:
    """Run the command line; an error is one line and exit code 1, never a traceback."""
    app()
