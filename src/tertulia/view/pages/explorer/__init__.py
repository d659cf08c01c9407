"""The explorer: one page, offline, to look around in a model's topics, to name them, and to read a text by them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.models import Topics
from tertulia.models.reading import origin_of
from tertulia.view.pages.explorer.documents import look_into
from tertulia.view.pages.explorer.facts import facts_of
from tertulia.view.pages.explorer.layout import body_of
from tertulia.view.pages.html import asset, data, page

_SCRIPTS = ("read.js", "topics.js", "page.js", "topic.js", "views.js", "texts.js")  # one after the other, as one script


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
    """See `Topics.explore`."""
    written = explorer(model, documents, labels=labels, dates=dates, other=other, column=column)
    try:
        path.write_text(written, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
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
    """The page itself."""
    topics: Topics = getattr(model, "topics_", model)  # of a trained estimator
    if documents is None and (labels is not None or dates is not None or column is not None):
        raise InputError("labels, dates and column belong to documents: give documents, too, or leave them out")
    facts = facts_of(topics, getattr(other, "topics_", other))
    if documents is not None:
        facts |= look_into(topics, documents, labels, dates, column)
    script = '"use strict";\n' + "\n".join(asset(f"explorer/{name}") for name in _SCRIPTS)
    return page(
        f"Topics: {origin_of(topics)}",
        *body_of(topics, has_texts=documents is not None),
        data("facts", facts),
        scripts=[script],
        layout=asset("explorer/explorer.css"),
    )
