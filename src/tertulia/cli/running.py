"""`tertulia run` and `tertulia resume`: train on one machine, stop at any time, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tertulia.cli.ending import Terminated, code_of
from tertulia.cli.live import Live, showing
from tertulia.view import console

if TYPE_CHECKING:
    from tertulia.runs.layout import Run

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def run(
    config: Annotated[Path, typer.Argument(help="The run's settings, a TOML file.", metavar="CONFIG.toml")],
    directory: Annotated[Path | None, typer.Option(help="Instead of the config's `directory`.")] = None,
    last: Annotated[
        Path | None, typer.Option("--from", metavar="LAST", help="Go on from this finished run, or saved model.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Instead of the config's `engine`.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Instead of the method's `epsilon`.")] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew where a run is already; that one is moved aside.")
    ] = False,
    live: Live = None,
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
    with showing(Path(settings.directory), live):
        _finish(begin(settings, fresh=fresh, say=console.say), as_json)


def resume(
    directory: Annotated[Path, typer.Argument(help="A run's directory.", metavar="RUN")],
    method: Annotated[list[str] | None, typer.Option(help="The module of your own method, if the run has one.")] = None,
    live: Live = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was interrupted, however it was."""
    from tertulia.runs.layout import Run

    with showing(directory, live):
        _finish(Run.open(directory, method or ()), as_json)


def _finish(started: Run, as_json: bool) -> None:
    """Drive a run and say what came of it, or how to go on with it."""
    from tertulia.runs.driver import finish, settings_of
    from tertulia.runs.results import FederatedTopics

    rounds = getattr(settings_of(started).method, "rounds", None) or 1
    with console.RoundProgress(rounds + 1, started.directory.name) as progress:
        try:
            result = finish(started, observe=progress)
        except (KeyboardInterrupt, Terminated) as stop:
            done = started.journal().rounds()
            when = f"after round {done[-1]}" if done else "before its first round ended"
            console.say_error(f"stopped {when}; go on: `tertulia resume {started.directory}`")
            raise typer.Exit(code_of(stop)) from None
    facts: dict[str, Any] = {"directory": str(started.directory)}
    if isinstance(result, FederatedTopics):
        took_part = {name: result.provenance.get(name, {}) for name in ("parties", "absent")}
        facts |= {"topics": result.n_topics, **took_part, **result.history[-1]}
    if as_json or not isinstance(result, FederatedTopics):
        console.print_json(facts)
    else:
        from tertulia.cli.models import print_drift

        console.show(f"{result!r}\nsaved in {started.directory / 'model'}")
        if "drift" in result.provenance:
            print_drift(result)
