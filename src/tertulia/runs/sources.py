"""Where a run's documents come from: a recipe for each party, or everything in one place for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tertulia.corpus import Corpus
from tertulia.corpus.recipes import parties_in, read_recipe
from tertulia.errors import ConfigError
from tertulia.runs.config import RunSettings
from tertulia.runs.documents import DataSettings, SourceSettings

POOLED = "pooled"  # the one party of the centralised scenario


def sources_of(settings: RunSettings) -> dict[str, dict[str, Any]]:
    """A recipe for each party: documents are read where they are used, by the party itself."""
    if settings.data is not None:
        recipe = {**_source(settings, settings.data), "split": split_of(settings.data, settings.seed)}
        return {party: {**recipe, "party": party} for party in parties_in(recipe)}
    for name, own in settings.parties.items():
        if own.path is None:
            raise ConfigError(f"parties.{name} has no `path`: say where its documents are")
    if not settings.parties:
        raise ConfigError("no parties are given: add [parties.NAME] sections, or one [data] section to be split")
    return {name: _source(settings, own) for name, own in settings.parties.items()}


def _source(settings: RunSettings, own: SourceSettings) -> dict[str, Any]:
    """What to read and how; texts stay where they must be embedded."""
    text = {"keep_text": True} if settings.method.keeps_text and own.embeddings is None else {}
    return {**own.source(), "options": settings.text, **text}


def split_of(data: DataSettings, seed: int) -> dict[str, Any]:
    """How a shared source is cut into parties, as plain data."""
    if data.path is None:
        raise ConfigError("[data] has no `path`: say where the documents are")
    if data.shards is not None:
        return {"kind": "shards", "shards": data.shards, "seed": seed}
    if data.split == "column":
        return {"kind": "column", "column": data.party}
    if data.split == "file":
        return {"kind": "file"}
    if data.split == "random":
        return {"kind": "random", "sizes": data.sizes, "seed": seed}
    return {"kind": "dirichlet", "parties": data.parties, "concentration": data.concentration, "seed": seed}


def pool_documents(settings: RunSettings, corpora: Mapping[str, Corpus] | None) -> Corpus:
    """Everybody's documents in one place: what a federation must never do, and every paper compares with."""
    if corpora is None:
        corpora = {party: read_recipe(recipe) for party, recipe in sources_of(settings).items()}
    return Corpus.concatenate(list(corpora.values()))
