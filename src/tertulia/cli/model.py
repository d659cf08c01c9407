"""Commands for models and pages: topics, explore, report, transform, evaluate, drift, words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.options import AsJson, Delta, Files, ModelPath, reads_files
from tertulia.errors import ConfigError
from tertulia.view import console

IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column with the ids; without it, the id of a row is a hash of its text.")
]
_PUBLIC_FILES = typer.Argument(help="Files or folders of public documents, never of a party.", metavar="FILE...")
_OF_DATA = typer.Option(
    "--column",
    help="Column of --data with the text, or WHAT=NAME: WHAT is text, id, label or date.",
    metavar="[WHAT=]NAME",
)
_COLUMNS = ("text", "id", "label", "date")
_WORDS = 20  # words for each topic in a table


def topics(
    model: ModelPath,
    words: Annotated[int, typer.Option("--words", "-n", help="Number of words for each topic.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show a model's topics."""
    loaded = load_model(model)
    tops = loaded.top_words(words)
    if as_json:
        weights = {} if loaded.weights is None else {"weights": loaded.weights.tolist()}
        given = ({"names": loaded.names} if any(loaded.names) else {}) | (
            {"hidden": loaded.hidden} if loaded.hidden else {}
        )
        console.print_json({"topics": tops, **weights, **given, "provenance": loaded.provenance})
    else:
        title = f"{loaded.n_topics} topics over {len(loaded.vocabulary)} words"
        console.records(title, loaded.topics_table(words).to_dicts())
    say_who_took_part(loaded, as_json)


def say_who_took_part(model: Any, as_json: bool = False) -> None:
    """Print which parties missed rounds, and warn of those that missed more than a tenth."""
    from tertulia.metrics.history import describe_missed, describe_participation, missed_warning, participation_in

    someone = model.provenance.get("absent") or describe_missed(participation_in(model.provenance))
    if someone and not as_json:
        console.line(f"from {describe_participation(model.provenance)}")
    if warning := missed_warning(model.provenance):
        console.say(f"warning: {warning}")


def drift(model: ModelPath, as_json: AsJson = False) -> None:
    """Compare the topics with those of the model that this one continues: kept, new and retired topics, by id."""
    loaded = load_model(model)
    if "drift" not in loaded.provenance:
        raise ConfigError(f"the model in {model} continues no other: only a model that does has drifted")
    if as_json:
        console.print_json({"continues": loaded.provenance["continues"], "drift": loaded.provenance["drift"]})
    else:
        print_drift(loaded)


def print_drift(model: Any) -> None:
    """Print how topics have changed."""
    rows = [
        {
            "topic": row["topic"],
            "state": row["state"],
            "distance": row.get("distance", ""),
            "share before": _percent(row.get("weight_before")),
            "share": _percent(row.get("weight")),
            "words that came": " ".join(row.get("came", ())),
            "words that went": " ".join(row.get("went", ())),
        }
        for row in model.provenance["drift"]
    ]
    console.records(f"Since run {model.provenance['continues']['run']}", rows)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


@reads_files
def transform(
    model: ModelPath,
    files: Files,
    source: dict[str, Any],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write: .parquet, .csv or .jsonl.")
    ] = None,
    id_column: IdColumn = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Number of threads; -1 for all cores.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Infer the topics of new documents: one row for each row of the files, in the same order.

    A row without text, or without a word of the vocabulary, gets the prior mean.
    """
    from tertulia.corpus import read
    from tertulia.view.tables import theta_table, write_table

    loaded = load_model(model)
    source |= {"id": id_column, "every_row": True}
    corpus = read(files, options=loaded.options, keep_text=loaded.reads_sentences, **source)
    console.say(corpus.report.summary())
    found = theta_table(loaded, corpus, jobs)
    if output is not None:
        write_table(found, output)
        console.say(f"{found.height} documents written to {output}")
    elif as_json:
        console.print_json({"documents": found.to_dicts()})
    else:
        strongest = [(row["id"], *_strongest(row)) for row in found.to_dicts()]
        console.table("Strongest topic", ["document", "topic", "share"], strongest)


@reads_files
def evaluate(model: ModelPath, files: Files, source: dict[str, Any], as_json: AsJson = False) -> None:
    """Evaluate a model on unseen documents: perplexity, coherence, diversity."""
    from tertulia.corpus import read
    from tertulia.view.tables import evaluation

    loaded = load_model(model)
    corpus = read(files, options=loaded.options, **source)
    console.say(corpus.report.summary())
    scores = evaluation(loaded, corpus)
    if as_json:
        console.print_json(scores)
    else:
        console.table(f"{model} on {corpus.n_documents} documents", ["measure", "value"], scores.items())


def load_model(path: Path) -> Any:
    """Load a saved model, the model of a run, or the model that a party of a run has chosen."""
    from tertulia.runs.one_machine import load

    return load(path)


def _strongest(row: Mapping[str, Any]) -> tuple[str, float]:
    shares = {name: value for name, value in row.items() if name.startswith("topic")}
    best = max(shares, key=lambda name: shares[name])
    return best, shares[best]


def explore(
    model: ModelPath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Page to write (topics.html).", metavar="FILE")
    ] = None,
    documents: Annotated[
        list[str] | None,
        typer.Option("--data", help="Your own documents; the page then contains texts.", metavar="FILE"),
    ] = None,
    columns: Annotated[list[str] | None, _OF_DATA] = None,
    other: Annotated[
        Path | None, typer.Option("--compare", help="Model or run to compare with.", metavar="MODEL")
    ] = None,
    names: Annotated[
        Path | None, typer.Option("--names", help="File that the page saved: names, hidden and merged topics.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Directory for the model with the changes of --names.", metavar="DIRECTORY"),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Table of the topics to write: .csv, .parquet or .jsonl.", metavar="FILE"),
    ] = None,
) -> None:
    """Write a page to explore the topics of a model: one HTML file that loads nothing from a network."""
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
        corpus = None if not documents else _read(documents, _columns_of(columns or []), loaded)
        against = None if other is None else load_model(other)
        written = loaded.explore(output or Path("topics.html"), corpus, other=against)
        console.say(f"{written.stat().st_size / 1000:,.0f} kB written to {written}: open it in a browser")
        if corpus is not None:
            console.say("it holds texts: do not pass it on")


def _with_parties(model: Any, path: Path) -> Any:
    """Add the topics that parties have released to the model of a run."""
    from tertulia.operations.progress import with_released
    from tertulia.runs.directory import Run

    return with_released(model, Run.open(path)) if (path / "run.json").exists() else model


def _columns_of(given: list[str]) -> dict[str, Any]:
    """Parse columns written as WHAT=NAME; a name alone is that of the text."""
    found = {}
    for text in given:
        what, equals, name = text.partition("=") if "=" in text else ("text", "=", text)
        if what not in _COLUMNS or not (equals and name):
            raise ConfigError(f"--column {text}: write {', '.join(f'{one}=NAME' for one in _COLUMNS)}")
        found[what] = name
    return found


def _read(documents: list[str], columns: dict[str, Any], model: Any) -> Any:
    from tertulia.corpus import read

    corpus = read(documents, options=model.options, keep_text=True, **columns)
    console.say(corpus.report.summary())
    return corpus


def report(
    directory: Annotated[Path, typer.Argument(help="Directory of a run, a party or a federation.", metavar="RUN")],
    party: Annotated[str | None, typer.Option(help="Write the page of this party only, for signature.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write (report.html, or report-PARTY.html)."),
    ] = None,
    rare: Annotated[
        Path | None, typer.Option("--rare-words", help="Also write the rare words that left, for the party itself.")
    ] = None,
    delta: Delta = 1e-6,
) -> None:
    """Write a report: one HTML file that loads nothing, works without scripts, and can be printed."""
    from tertulia.view.pages.report import write_rare_words, write_report

    if output is None:
        output = Path("report.html" if party is None else f"report-{re.sub(r'[^A-Za-z0-9_.]+', '-', party)[:60]}.html")
    written = write_report(directory, output, party, delta)
    console.line(f"{output}: {console.size(written)}, to be opened in a browser")
    if rare is not None:
        number = write_rare_words(directory, rare, party)
        console.line(f"{rare}: {number} words; it is for the party alone: do not pass it on")


@reads_files
def words(
    files: Annotated[list[str], _PUBLIC_FILES],
    source: dict[str, Any],
    output: Annotated[Path, typer.Option("--output", "-o", help="Word list to write, one word per line.")] = Path(
        "words.txt"
    ),
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Number of words to keep, the most frequent ones.")
    ] = 20_000,
    min_documents: Annotated[int, typer.Option(min=1, help="Least number of documents that contain a word.")] = 5,
    max_share: Annotated[
        float, typer.Option(min=0, max=1, help="Largest share of documents that contain a word.")
    ] = 0.5,
    language: Annotated[str, typer.Option(help="ISO 639-1 code of the language; its stop words are left out.")] = "en",
    ngrams: Annotated[
        int, typer.Option(min=1, help="Greatest number of words in a phrase; chance neighbours are left out.")
    ] = 1,
) -> None:
    """Write a word list from public documents, the most frequent words first."""
    from tertulia._disk import atomic_write
    from tertulia.corpus import TextOptions, read
    from tertulia.corpus.vocabulary import word_list

    corpus = read(files, **source, options=TextOptions(language=language, ngrams=ngrams))
    console.say(corpus.report.summary())
    found = word_list(corpus, max_words, min_documents, max_share, phrases=ngrams > 1)
    known = corpus.encode(found).n_tokens / max(corpus.n_tokens, 1)
    atomic_write(output, "".join(f"{word}\n" for word in found.words).encode())
    console.say(
        f"{len(found)} words written to {output}: {known:.0%} of these documents' tokens. "
        f'Use it as vocabulary.mode = "public", vocabulary.words = "{output}"'
    )
