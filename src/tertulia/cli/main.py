"""The command line: each command a few lines over the API. `--json` speaks to machines."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia import __version__
from tertulia.cli import doctor, explore, federation, ledger, models, nvflare, party, rehearse, report, upgrade, words
from tertulia.cli.live import Live, LiveAt, showing
from tertulia.errors import TertuliaError
from tertulia.view import console

app = typer.Typer(
    help="Federated topic modelling: one topic model from documents that never leave their owners.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("words")(words.words)
for _command in (
    *(models.topics, models.drift, models.transform, models.evaluate, explore.explore),
    *(federation.init, federation.invite, federation.serve, federation.start, federation.status, federation.revoke),
    *(party.join, party.approve, party.attend, party.fetch, party.leave, party.forget),
    *(rehearse.rehearse, doctor.doctor, upgrade.upgrade, report.report),
):
    app.command()(_command)
app.add_typer(ledger.app, name="ledger")
app.add_typer(nvflare.app, name="nvflare")
ConfigFile = Annotated[Path, typer.Argument(help="The run's settings, a TOML file.", metavar="CONFIG.toml")]
RunDirectory = Annotated[Path, typer.Argument(help="A run's directory.", metavar="RUN")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def _print_version(asked: bool) -> None:
    if asked:
        console.line(f"tertulia {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """Take what stands before a command."""


@app.command()
def demo(
    directory: Annotated[Path, typer.Option(help="Where to put the run.")] = Path("runs/demo"),
    live: Live = False,
    live_at: LiveAt = None,
    as_json: AsJson = False,
) -> None:
    """Three parties (the docstrings of Python, NumPy and SciPy) train one topic model."""
    from tertulia.cli.demo import run_demo

    with showing(directory, live, live_at):
        run_demo(directory, as_json)


@app.command()
def run(
    config: ConfigFile,
    directory: Annotated[Path | None, typer.Option(help="Instead of the config's `directory`.")] = None,
    last: Annotated[
        Path | None, typer.Option("--from", metavar="LAST", help="Go on from this finished run, or saved model.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Instead of the config's `engine`.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Instead of the method's `epsilon`.")] = None,
    live: Live = False,
    live_at: LiveAt = None,
    as_json: AsJson = False,
) -> None:
    """Train a model as CONFIG.toml says."""
    from tertulia.runs import config as configuration
    from tertulia.runs.rehearsal import begin

    settings = configuration.load(config)
    method = None if epsilon is None else {**settings.method.model_dump(), "epsilon": epsilon}
    changes = {"directory": str(directory) if directory else None, "engine": engine, "method": method}
    changes["start_from"] = str(last.resolve()) if last else None
    settings = settings.replace(**{k: v for k, v in changes.items() if v is not None})
    with showing(Path(settings.directory), live, live_at):
        _finish(begin(settings), as_json)


@app.command()
def resume(
    directory: RunDirectory,
    method: Annotated[list[str] | None, typer.Option(help="The module of your own method, if the run has one.")] = None,
    live: Live = False,
    live_at: LiveAt = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was interrupted, however it was."""
    from tertulia.runs.layout import Run

    with showing(directory, live, live_at):
        _finish(Run.open(directory, method or ()), as_json)


@app.command()
def scenarios(
    config: ConfigFile,
    directory: Annotated[Path | None, typer.Option(help="Instead of the config's `directory`.")] = None,
    live: Live = False,
    live_at: LiveAt = None,
    as_json: AsJson = False,
) -> None:
    """Train federated, with all documents in one place, and each party alone, beside controls; score on everybody's."""
    from tertulia.runs import config as configuration
    from tertulia.runs.scenarios import compare

    settings = configuration.load(config)
    if directory is not None:
        settings = settings.replace(directory=str(directory))
    with showing(Path(settings.directory), live, live_at):
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


@app.command()
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
        console.print_json(found)
    else:
        console.records("Share of each topic in a party's documents", found["prevalence"])
        console.records("How alike parties are", found["similarity"])


@app.command()
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


@app.command()
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
        console.print_json(report)
    else:
        console.print_dry_run(report)
    if any(row["verdict"] != "allowed" for row in report["disclosed"]):
        raise typer.Exit(3)


@app.command()
def disclosures(directory: RunDirectory, as_json: AsJson = False) -> None:
    """What left each party: in which round, how many bytes, under which mechanism."""
    from tertulia.runs.layout import Run
    from tertulia.view.tables import disclosure_rows

    rows = disclosure_rows(Run.open(directory))
    _show("disclosures", f"What left each party of {directory}", rows, as_json)


@app.command()
def privacy(
    directory: Annotated[Path, typer.Argument(help="A run's directory, or a party's.", metavar="RUN")],
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is computed.")] = 1e-6,
    every: Annotated[bool, typer.Option("--all", help="Every thing, and every release.")] = False,
    as_json: AsJson = False,
) -> None:
    """What left each party, in a sentence, and what it costs a word, a document, a user."""
    from tertulia.cli.privacy import print_privacy

    print_privacy(directory, delta, every, as_json)


def _finish(started: Any, as_json: bool) -> None:
    """Drive a run with a progress bar and say what came of it."""
    from tertulia.runs.driver import finish, settings_of
    from tertulia.runs.results import FederatedTopics

    rounds = getattr(settings_of(started).method, "rounds", None) or 1
    with console.RoundProgress(rounds + 1, started.directory.name) as progress:
        result = finish(started, observe=progress)
    facts: dict[str, Any] = {"directory": str(started.directory)}
    if isinstance(result, FederatedTopics):
        took_part = {name: result.provenance.get(name, {}) for name in ("parties", "absent")}
        facts |= {"topics": result.n_topics, **took_part, **result.history[-1]}
    if as_json or not isinstance(result, FederatedTopics):
        console.print_json(facts)
    else:
        console.show(f"{result!r}\nsaved in {started.directory / 'model'}")
        if "drift" in result.provenance:
            models.print_drift(result)


def _show(key: str, title: str, rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print rows, as JSON under a key or as a table."""
    if as_json:
        console.print_json({key: rows})
    else:
        console.records(title, rows)


def main() -> None:
    """Run the command line; an error is one line and exit code 1, never a traceback."""
    warnings.showwarning = lambda text, *_: console.say(f"warning: {text}")
    try:
        app()
    except TertuliaError as error:
        console.say(f"error: {error}")
        sys.exit(1)
    except PermissionError as error:
        console.say(
            f"error: there is no permission for {error.filename}: run this as who owns it, or choose another place"
        )
        sys.exit(1)
    except KeyboardInterrupt:
        console.say("interrupted: `tertulia resume RUN` goes on from the last round")
        sys.exit(130)
