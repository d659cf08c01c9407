"""Commands over a model that is there: its topics, those of new documents, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.reading import reads_files
from tertulia.errors import ConfigError
from tertulia.view import console

ModelDirectory = Annotated[Path, typer.Argument(help="A directory: a model's, a run's, a party's.", metavar="MODEL")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Files = Annotated[list[str], typer.Argument(help="Files or folders of documents.", metavar="FILE...")]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="The column that holds ids; without, a row is known by a hash of its text.")
]


def topics(
    model: ModelDirectory,
    words: Annotated[int, typer.Option("--words", "-n", help="Words per topic.")] = 10,
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


def drift(model: ModelDirectory, as_json: AsJson = False) -> None:
    """What became of the topics of the model that this one goes on from: kept, new and retired ones, by their ids."""
    loaded = load_model(model)
    if "drift" not in loaded.provenance:
        raise ConfigError(f"the model in {model} began anew: only one that goes on from another has drifted")
    if as_json:
        console.print_json({"continues": loaded.provenance["continues"], "drift": loaded.provenance["drift"]})
    else:
        print_drift(loaded)


def print_drift(model: Any) -> None:
    """Print what became of topics."""
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
    model: ModelDirectory,
    files: Files,
    source: dict[str, Any],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write Parquet, CSV or JSONL here.")] = None,
    id_column: IdColumn = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find the topics of new documents: a row for each row of the files, in their order.

    A row without a text, or without a word that the model knows, gets the prior mean.
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
def evaluate(model: ModelDirectory, files: Files, source: dict[str, Any], as_json: AsJson = False) -> None:
    """Score a model on documents it has not seen: perplexity, coherence, diversity."""
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
    """The model in a directory: a saved one, a run's, or what a party of a run has chosen."""
    from tertulia.federation.party.host import PartyConfig
    from tertulia.models import Topics
    from tertulia.runs.party_layout import best_at_home
    from tertulia.runs.rehearsal import best_for

    if (path / "party.json").exists():  # of a run: what this party has chosen for its own documents
        place = path.resolve().parents[1]
        return best_for(place, PartyConfig.load(path).id) if (place / "run.json").exists() else best_at_home(path)
    return Topics.load(path / "model" if (path / "run.json").exists() else path)


def _strongest(row: Mapping[str, Any]) -> tuple[str, float]:
    shares = {name: value for name, value in row.items() if name.startswith("topic")}
    best = max(shares, key=lambda name: shares[name])
    return best, shares[best]
