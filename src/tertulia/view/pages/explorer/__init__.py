"""The explorer: one offline page to explore the topics of a model, to name them, and to find them in a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tertulia._disk import write_page
from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.models import Topics
from tertulia.models.display import origin_of
from tertulia.view.pages.explorer.documents import document_facts
from tertulia.view.pages.explorer.facts import facts_of
from tertulia.view.pages.explorer.layout import body_of
from tertulia.view.pages.html import asset, data, page

_SCRIPTS = ("read.js", "topics.js", "page.js", "topic.js", "views.js", "texts.js")  # concatenated into one script


def write_explorer(
    model: Any,
    path: Path,
    documents: Documents = None,
    *,
    labels: Sequence[str | None] | None = None,
    dates: Sequence[str | None] | None = None,
    other: Any = None,
    column: str | None = None,
) -> Path:
    """Write the page; see `Topics.explore`."""
    written = explorer(model, documents, labels=labels, dates=dates, other=other, column=column)
    try:
        write_page(path, written.encode())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place") from error
    return path


def explorer(
    model: Any,
    documents: Documents = None,
    *,
    labels: Sequence[str | None] | None = None,
    dates: Sequence[str | None] | None = None,
    other: Any = None,
    column: str | None = None,
) -> str:
    """Build the page."""
    topics: Topics = getattr(model, "topics_", model)  # a fitted estimator has `topics_`
    if documents is None and (labels is not None or dates is not None or column is not None):
        raise InputError("labels, dates and column belong to documents: give documents, too, or leave them out")
    facts = facts_of(topics, getattr(other, "topics_", other))
    if documents is not None:
        facts |= document_facts(topics, documents, labels, dates, column)
    script = '"use strict";\n' + "\n".join(asset(f"explorer/{name}") for name in _SCRIPTS)
    return page(
        origin_of(topics),
        *body_of(topics, has_texts=documents is not None),
        data("facts", facts),
        scripts=[script],
        layout=asset("explorer/explorer.css"),
    )
