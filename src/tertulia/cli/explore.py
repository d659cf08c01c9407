"""`tertulia explore`: a page to look around in a model's topics, and the topics as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.models import ModelDirectory, load_model
from tertulia.errors import ConfigError
from tertulia.view import console

_COLUMNS = ("text", "id", "label", "date")
_WORDS = 20  # of a topic in a table


def explore(
    model: ModelDirectory,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the page (topics.html).", metavar="FILE")
    ] = None,
    documents: Annotated[
        list[str] | None, typer.Option("--data", help="Your own documents: the page will hold texts.", metavar="FILE")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column", help="text=..., id=..., label=... or date=...: columns of --data.", metavar="WHAT=NAME"
        ),
    ] = None,
    other: Annotated[Path | None, typer.Option("--compare", help="Another model, or run.", metavar="MODEL")] = None,
    names: Annotated[
        Path | None, typer.Option("--names", help="What the page saved: names, hidden and merged topics.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Save the model with --names here.", metavar="DIRECTORY")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the topics as .csv, .parquet or .jsonl.", metavar="FILE")
    ] = None,
) -> None:
    """Write a page to look around in a model's topics: one file that any browser opens, without a network."""
    from tertulia.view.tables import write_table

    if columns and not documents:
        raise ConfigError("--column names columns of --data: give --data, too")
    loaded = _with_parties(load_model(model), model)
    if names is not None:
        loaded = loaded.edit(names)
    elif save is not None:
        raise ConfigError("--save keeps what --names says with the model: give --names, too")
    if save is not None:
        console.say(f"the model with these names is saved in {loaded.save(save)}")
    if export is not None:
        write_table(loaded.topics_table(_WORDS), export)
        console.say(f"{loaded.n_topics - len(loaded.hidden)} topics written to {export}")
    if output is not None or (save is None and export is None):
        corpus = None if not documents else _read(documents, _columns(columns or []), loaded)
        against = None if other is None else load_model(other)
        written = loaded.explore(output or Path("topics.html"), corpus, other=against)
        console.say(f"{written.stat().st_size / 1000:,.0f} kB written to {written}: open it in a browser")
        if corpus is not None:
            console.say("it holds texts: do not pass it on")


def _with_parties(model: Any, path: Path) -> Any:
    """A run's model knows the parties' own, as far as they have released them."""
    from tertulia.runs.layout import Run
    from tertulia.runs.so_far import with_released

    return with_released(model, Run.open(path)) if (path / "run.json").exists() else model


def _columns(given: list[str]) -> dict[str, Any]:
    """Read columns that are written WHAT=NAME."""
    found = {}
    for text in given:
        what, equals, name = text.partition("=")
        if what not in _COLUMNS or not (equals and name):
            raise ConfigError(f"--column {text}: write {', '.join(f'{one}=NAME' for one in _COLUMNS)}")
        found[what] = name
    return found


def _read(documents: list[str], columns: dict[str, Any], model: Any) -> Any:
    from tertulia.corpus import read

    corpus = read(documents, options=model.options, keep_text=True, **columns)
    console.say(corpus.report.summary())
    return corpus
