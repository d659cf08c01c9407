"""Recipes: plain data that say where a party's documents are, how to read them, and which rows belong to the party.

A recipe is JSON. It is stored in the party's directory until the party itself reads its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tertulia.corpus.advice import warn_of_copies
from tertulia.corpus.builder import Builder
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.readers import Source, read
from tertulia.corpus.report import ReadReport
from tertulia.corpus.splits import Assignment, Row, at_random, by_column, by_file, dirichlet, in_shards
from tertulia.corpus.tokens import TextOptions

# The fields of `Source`, "options", "keep_text", and for a shared source "split" and "party".
Recipe = Mapping[str, Any]
_NO_SOURCE = ("options", "split", "party", "keep_text", "embeddings")


def read_recipe(recipe: Recipe, directory: Path | None = None) -> Corpus:
    """Read the documents that a recipe describes.

    The options come from the federation, not from the party. So words on a stop list of the options keep their places
    as `<unk>`, which is on no word list: no choice of a list can reveal how often other words occur.
    """
    arguments = dict(recipe)
    options = TextOptions.from_dict(arguments.pop("options"))
    split = arguments.pop("split", None)
    parties = assignment(split) if split else None
    corpus = read(**arguments, options=options, directory=directory, parties=parties, keep_places=True)
    warn_of_copies(corpus)
    return corpus


def find_documents(recipe: Recipe, wanted: Callable[[Row], bool]) -> Corpus | None:
    """Read only the documents whose rows are `wanted`, as `read_recipe` reads them; None if there is none."""
    arguments = {name: value for name, value in recipe.items() if name not in _NO_SOURCE}
    split, options = recipe.get("split"), TextOptions.from_dict(recipe["options"])
    rule = assignment(split) if split else None
    rows = Source(**arguments).rows(ReadReport(), rule.columns if rule else ())
    with closing(Builder(options, keep_places=True)) as builder:
        found = 0
        for _, row in rows:
            if wanted(row) and (rule is None or rule(row) == recipe["party"]):
                builder.add(row.id, row.text if row.tokens is None else row.tokens, row.label, row.date, row.user)
                found += 1
        return builder.finish() if found else None


def assignment(split: Mapping[str, Any]) -> Assignment:
    """Make the assignment rule that a split describes."""
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
    """List the parties of a shared source; read them from the data if the split does not name them."""
    split = assignment(recipe["split"])
    if split.parties:
        return list(split.parties)
    source = Source(**{name: value for name, value in recipe.items() if name not in _NO_SOURCE})
    return sorted({split(row) for _, row in source.rows(ReadReport(), split.columns)})
