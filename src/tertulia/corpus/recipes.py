"""A party's documents as plain data: where they are, how they are read, which rows are its own.

A recipe is JSON, so that it can wait in a party's directory until the party itself reads its documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertulia.corpus.advice import warn_of_copies
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.readers import Source, read
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import Assignment, at_random, by_column, by_file, dirichlet, in_shards
from tertulia.corpus.tokens import TextOptions

Recipe = Mapping[
    str, Any
]  # the fields of `Source`, "options", "keep_text", and for a shared source "split" and "party"


def read_recipe(recipe: Recipe, directory: Path | None = None) -> Corpus:
    """Read what a recipe describes."""
    arguments = dict(recipe)
    options = TextOptions.from_dict(arguments.pop("options"))
    split = arguments.pop("split", None)
    parties = assignment(split) if split else None
    corpus = read(**arguments, options=options, directory=directory, parties=parties)
    warn_of_copies(corpus)
    return corpus


def assignment(split: Mapping[str, Any]) -> Assignment:
    """The rule that a split describes."""
    kind, seed = split["kind"], split.get("seed", 0)
    if kind == "column":
        return by_column(split["column"])
    if kind == "file":
        return by_file()
    if kind == "shards":
        return in_shards(split["shards"], seed)
    if kind == "random":
        return at_random(split["sizes"], seed)
    return dirichlet(split["parties"], split["concentration"], seed)


def parties_in(recipe: Recipe) -> list[str]:
    """The parties into which a shared source falls; read from the data where the split does not name them."""
    split = assignment(recipe["split"])
    if split.parties:
        return list(split.parties)
    others = ("options", "split", "keep_text", "embeddings")
    source = Source(**{name: value for name, value in recipe.items() if name not in others})
    return sorted({split(row) for _, row in source.rows(ReadReport(), split.columns)})
