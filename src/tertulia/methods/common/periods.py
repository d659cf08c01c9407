"""Settings of tables by time: parties agree on periods, for else they would disclose theirs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tertulia._arrays import I64
from tertulia.corpus import Corpus
from tertulia.corpus.periods import By, Periods
from tertulia.errors import InputError

PeriodKind = Annotated[
    By | None,
    Field(description="a table by `month`, `quarter` or `year` of documents' dates; None: one row"),
]
FirstDate = Annotated[str | None, Field(description="a date in the first period, `2025-10` say; public, like `until`")]
LastDate = Annotated[str | None, Field(description="a date in the last period")]


def periods_or_none(by: By | None, since: str | None, until: str | None) -> Periods | None:
    """Return the agreed periods; raise `ValueError` if they are not given."""
    if by is None:
        return None
    if since is None or until is None:
        raise ValueError(
            f"by = '{by}' needs `since` and `until`: parties agree on periods, and would else disclose theirs"
        )
    return Periods.between(by, since, until)


def places_of(party: str, corpus: Corpus, periods: Periods) -> I64:
    """Return the period of each document, -1 outside all of them; raise `InputError` if documents have no dates."""
    if "date" not in corpus.table.columns:
        raise InputError(f"party '{party}' has no dates: read them with a column `date`, or leave `by` out")
    return periods.places(corpus.table["date"].fill_null(""))
