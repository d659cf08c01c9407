"""Command for one corpus on one machine: train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tertulia.cli.options import AsJson, Files, next_steps, reads_files
from tertulia.errors import ConfigError
from tertulia.view import console


@reads_files
def train(
    files: Files,
    source: dict[str, Any],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory of the model.")] = Path("model"),
    topics: Annotated[int, typer.Option("--topics", "-k", min=1, help="Number of topics.")] = 20,
    seeds: Annotated[
        list[str] | None,
        typer.Option(
            "--seeds", help="Name and seed words of a topic, once for each such topic.", metavar="NAME=WORD,WORD"
        ),
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the documents, whose stop words are left out.")] = "en",
    seed: Annotated[int, typer.Option(help="Everything random is a function of it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train LDA on files of this machine, and save the model. There are no parties, and nothing leaves."""
    from tertulia.api.lda import LDA
    from tertulia.corpus import TextOptions, read

    named = _seeds(seeds or [])
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output} exists and is not empty: give another directory with --output")
    corpus = read(files, options=TextOptions(language=language, clean=True), **source)
    console.say(corpus.report.summary())
    model = LDA(topics=topics, seeds=named, random_state=seed, n_jobs=-1).fit(corpus).topics_
    model.save(output)
    if as_json:
        sizes = {"topics": model.n_topics, "words": len(model.vocabulary), "documents": corpus.n_documents}
        console.print_json({"directory": str(output), **sizes, "sweeps": model.provenance["sweeps"]})
        return
    console.show(f"{model!r}\nsaved in {output}")
    next_steps(f"tertulia topics {output}", f"tertulia explore {output}")


def _seeds(given: list[str]) -> dict[str, list[str]]:
    """Parse NAME=WORD,WORD into seeds."""
    found: dict[str, list[str]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        words = [word.strip() for word in listed.split(",") if word.strip()]
        if not (name.strip() and words):
            raise ConfigError(f"--seeds '{text}': write NAME=WORD,WORD, such as cardiology=heart,artery")
        if name.strip() in found:
            raise ConfigError(f"--seeds '{name.strip()}' is given twice: write all its words in one")
        found[name.strip()] = words
    return found
