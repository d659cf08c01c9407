"""OpenAlex: works of the snapshot, as JSON lines (.gz) or Parquet (developers.openalex.org).

OpenAlex publishes abstracts as an index from words to their places. In Parquet the index is a JSON text, a map or a
struct.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tertulia.corpus.formats.base import Record
from tertulia.corpus.sources.base import Layout

_MOST_WORDS = 100_000  # of an abstract; more places are a fault


def abstract_of(index: Any) -> str | None:
    """Put the words of an inverted index in their places; None if there is no abstract.

    >>> abstract_of({"rose": [1, 3], "Rivers": [0], "and": [2]})
    'Rivers rose and rose'
    """
    placed: list[tuple[int, str]] = []
    for word, places in _pairs(index):
        placed += [(place, word) for place in places or () if isinstance(place, int)]
    if not placed or len(placed) > _MOST_WORDS:
        return None
    return " ".join(word for _, word in sorted(placed))


def _pairs(index: Any) -> Iterable[tuple[str, Any]]:
    """List words with their places, in any of the shapes."""
    if isinstance(index, str):
        try:
            index = json.loads(index)
        except (ValueError, RecursionError):
            return []
    if isinstance(index, Mapping):
        inner = index.get("InvertedIndex")
        return _pairs(inner) if isinstance(inner, Mapping) else list(index.items())
    if isinstance(index, list):  # a map of Parquet
        return [
            (pair["key"], pair["value"])
            for pair in index
            if isinstance(pair, Mapping) and {"key", "value"} <= set(pair)
        ]
    return []


def _convert(record: Record) -> Record:
    values = record.values
    topic = values.get("primary_topic")
    field = topic.get("field") if isinstance(topic, Mapping) else None
    found = {
        "title": values.get("title") or values.get("display_name"),
        "abstract": abstract_of(values.get("abstract_inverted_index")),
        "id": values.get("id"),
        "date": values.get("publication_date"),
        "field": field.get("display_name") if isinstance(field, Mapping) else None,
        "topic": topic.get("display_name") if isinstance(topic, Mapping) else None,
        "language": values.get("language"),
        "type": values.get("type"),
    }
    return record._replace(values=found)


LAYOUT = Layout(
    columns={"text": ("title", "abstract"), "id": "id", "date": "date", "label": "field"},
    marks=("abstract_inverted_index",),
    raw=(
        "abstract_inverted_index",
        "title",
        "display_name",
        "id",
        "publication_date",
        "primary_topic",
        "language",
        "type",
    ),
    gives=("title", "abstract", "id", "date", "field", "topic", "language", "type"),
    convert=_convert,
    hint="it reads works of the snapshot, not authors or sources",
)
