"""Commands for runs on one machine: demo, check, run, resume, scenarios, compare."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.options import AsJson, ConfigFile, Live, RunPath, live_status
from tertulia.cli.process import REFUSED, Terminated, code_of
from tertulia.errors import ConfigError
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.runs.directory import Run

_Directory = Annotated[Path | None, typer.Option(help="Directory of the run, instead of the config's `directory`.")]


def demo(
    directory: Annotated[Path, typer.Option(help="Directory of the run.")] = Path("runs/demo"),
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Train one topic model for eight teams that hold the docstrings of Python, NumPy and SciPy."""
    from tertulia.cli.demo import run_demo

    with live_status(directory, live):
        run_demo(directory, as_json)


def check(
    config: Annotated[
        Path, typer.Argument(help="Settings of the run, or the directory of a party.", metavar="CONFIG.toml")
    ],
    as_json: AsJson = False,
) -> None:
    """Report what a run would read, train and disclose, and the verdict of each party's policy. Nothing is trained."""
    from tertulia.cli.party import check_party
    from tertulia.runs import settings as configuration
    from tertulia.view.dry_run import dry_run

    _print_dry_run(check_party(config) if config.is_dir() else dry_run(configuration.load(config)), as_json)


def run(
    config: ConfigFile,
    directory: _Directory = None,
    last: Annotated[
        Path | None, typer.Option("--from", metavar="LAST", help="Continue this finished run, or saved model.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Engine, instead of the config's `engine`.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Epsilon, instead of the method's `epsilon`.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start again in a directory that has a run; that run is moved aside.")
    ] = False,
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Train a model with the settings in CONFIG.toml."""
    from tertulia.runs import settings as configuration
    from tertulia.runs.one_machine import begin

    settings = configuration.load(config)
    method = None if epsilon is None else {**settings.method.model_dump(), "epsilon": epsilon}
    changes = {"directory": str(directory) if directory else None, "engine": engine, "method": method}
    changes["start_from"] = str(last.resolve()) if last else None
    settings = settings.replace(**{k: v for k, v in changes.items() if v is not None})
    with live_status(Path(settings.directory), live):
        _finish(begin(settings, fresh=fresh, say=console.say), as_json)


def resume(
    directory: RunPath,
    method: Annotated[list[str] | None, typer.Option(help="Module of your own method, if the run uses one.")] = None,
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Resume an interrupted run from its last checkpoint."""
    from tertulia.runs.directory import Run

    with live_status(directory, live):
        _finish(Run.open(directory, method or ()), as_json)


def _finish(started: Run, as_json: bool) -> None:
    """Drive a run to its end and print the result; if it is stopped, print how to resume it."""
    from tertulia.runs.driver import finish, settings_of
    from tertulia.runs.results import FederatedTopics

    settings = settings_of(started)
    rounds = settings.method.rounds_in_all(continues=settings.start_from is not None) or 2
    with console.RoundProgress(rounds, started.directory.name) as progress:
        try:
            result = finish(started, observe=progress)
        except (KeyboardInterrupt, Terminated) as stop:
            done = started.journal().rounds()
            when = f"after round {done[-1]}" if done else "before its first round ended"
            console.say_error(f"stopped {when}; go on: `tertulia resume {started.directory}`")
            raise typer.Exit(code_of(stop)) from None
    facts: dict[str, Any] = {"directory": str(started.directory)}
    if isinstance(result, FederatedTopics):
        took_part = {name: result.provenance.get(name, {}) for name in ("parties", "absent", "participation")}
        facts |= {"topics": result.n_topics, **took_part, **result.history[-1]}
    if as_json or not isinstance(result, FederatedTopics):
        console.print_json(facts)
    else:
        from tertulia.cli.model import print_drift

        console.show(f"{result!r}\nsaved in {started.directory / 'model'}")
        if "drift" in result.provenance:
            print_drift(result)


def scenarios(config: ConfigFile, directory: _Directory = None, live: Live = None, as_json: AsJson = False) -> None:
    """Train federated, pooled and alone, with controls, and score all models on the held-out documents of all."""
    from tertulia.runs import settings as configuration
    from tertulia.runs.scenarios import compare

    settings = configuration.load(config)
    if directory is not None:
        settings = settings.replace(directory=str(directory))
    with live_status(Path(settings.directory), live):
        rows = compare(settings, console.say)
    if as_json:
        console.print_json({"scenarios": rows})
        return
    shown = [{name: value for name, value in row.items() if name != "parties"} for row in rows]
    console.records(f"Scenarios in {settings.directory}", shown)
    if len(rows[0]["parties"]) <= 6:  # the report shows more
        own = [{"scenario": row["scenario"], **row["parties"]} for row in rows]
        console.records("Perplexity on each party's own documents", own)
    console.say(f"a page of all this: `tertulia report {settings.directory}`")


def compare(
    directory: RunPath,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", help="Group of parties: only sums over groups are used.", metavar="NAME=PARTY,PARTY"),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Period of a table over time: month, quarter or year.")] = None,
    between: Annotated[
        tuple[str, str] | None, typer.Option(help="Dates in the first and last period.", metavar="SINCE UNTIL")
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="Add noise that gives each document this epsilon.")] = None,
    dry: Annotated[
        bool, typer.Option("--check", help="Report what would leave, and the verdict of policies; compare nothing.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for CSV files of the tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the topics of the parties of a finished run. The comparison is a run of its own, RUN-compared."""
    from tertulia.applications import compare
    from tertulia.view.dry_run import dry_run

    since, until = between or (None, None)
    given: dict[str, Any] = {
        "groups": groups_of(groups or []),
        "by": by,
        "since": since,
        "until": until,
        "epsilon": epsilon,
    }
    if dry:
        _print_dry_run(dry_run(compare.settings_of_run(directory, **given)), as_json)
        return
    found = _compare(directory, output, given)
    if as_json:
        from tertulia.cli.json_values import comparison_of

        console.print_json(comparison_of(found))
    else:
        console.records("Share of each topic in a party's documents", found["prevalence"])
        console.records("How alike parties are", found["similarity"])


def _compare(run: Path, output: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Compare the parties of a run; write CSV files to `output`, and return the tables as plain data."""
    from tertulia.applications import compare

    found = compare.of_run(run, **settings)
    if output is not None:
        console.say(f"tables written to {found.save(output)}")
    tables = {"prevalence": found.table(), "similarity": found.similarity()}
    if len(found.periods) > 1:
        tables["over_time"] = found.over_time()
    rows = {name: table.fill_nan(None).to_dicts() for name, table in tables.items()}
    return {"parties": found.names, "epsilon": found.epsilon if found.sigma else "infinite (non-private)", **rows}


def groups_of(given: list[str]) -> dict[str, tuple[str, ...]]:
    """Parse groups written as NAME=PARTY,PARTY.

    >>> groups_of(["science=MPS,GEO"])
    {'science': ('MPS', 'GEO')}
    """
    found = {}
    for text in given:
        name, equals, members = text.partition("=")
        if not (name and equals and members):
            raise ConfigError(f"--group {text}: write NAME=PARTY,PARTY, such as science=MPS,GEO")
        found[name] = tuple(member.strip() for member in members.split(","))
    return found


def _print_dry_run(report: Mapping[str, Any], as_json: bool) -> None:
    """Print what would leave; exit with code 3 if a policy forbids some of it."""
    if as_json:
        from tertulia.cli.json_values import dry_run_of

        console.print_json(dry_run_of(report))
    else:
        console.print_dry_run(report)
    if any(row["verdict"] != "allowed" for row in report["disclosed"]):
        raise typer.Exit(REFUSED)
