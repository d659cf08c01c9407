"""Shares of topics in groups of documents: over time, and by label.

The tables are for the owner of the documents: small groups are not left out, and each row has the number of its
documents. To compare parties under their policies, use `tertulia.applications.compare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from tertulia._arrays import F64, I64
from tertulia.corpus.inputs import Documents, with_column
from tertulia.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from tertulia.corpus import Corpus
    from tertulia.corpus.periods import By
    from tertulia.models.topics import Topics

_BLOCK = 1 << 14  # documents whose shares are held at a time


class Groupable:
    """The methods of `Topics` that compute shares of topics in groups of documents."""

    def over_time(
        self,
        documents: Documents,
        by: By = "month",
        date: str | None = None,
        *,
        column: str | None = None,
        n_jobs: int = 1,
    ) -> pl.DataFrame:
        """Tabulate the topics' shares by month, quarter or year: a row for each period and topic.

        Documents have their dates (2026-05-31, 2026-05, or 2026 by year) in a column `date`, unless `date` names
        another, and their texts in `text`, unless `column` does. Without a readable date their period is null. `share`
        is the mean over the `documents` that hold a word of the model, or null if there are none. Hidden topics are
        left out.
        """
        from tertulia.corpus.periods import Periods

        model = cast("Topics", self)
        corpus, dates = _grouped(model, with_column(documents, column, date=date), "date")
        periods = Periods.covering(by, dates)
        if periods is None:
            raise InputError("no date can be read: write dates as 2026-05-31, 2026-05 or, by year, 2026")
        return _table(model, corpus, "period", [*periods.labels], periods.places(dates.fill_null("")), n_jobs)

    def trends(self) -> pl.DataFrame:
        """Tabulate the topics' documents by period, over all parties, as the run released them (setting `by`).

        `share` is of the period's documents. `deviation` is that of the noise on `documents`; 0: there is none.
        """
        import polars as pl

        from tertulia.models.frame import Frame

        model = cast("Topics", self)
        found = dict(model.provenance.get("embedding") or {}).get("over_time")
        if found is None:
            raise InputError(
                "the run released no documents by period: give EmbeddingTopics by='month' with since and until, or "
                "tabulate documents of your own with `over_time`"
            )
        counts = np.array(found["documents"])  # [K, P]
        totals = np.maximum(np.maximum(counts, 0.0).sum(axis=0), 1e-9)
        shown = [k for k in range(model.n_topics) if k not in model.hidden]
        periods, P = found["periods"], counts.shape[1]
        columns = {
            "period": [label for label in periods for _ in shown],
            "topic": shown * P,
            **({"name": [model.names[k] for k in shown] * P} if any(model.names) else {}),
            "documents": counts[shown].T.ravel(),
            "share": (np.maximum(counts[shown], 0.0) / totals).T.ravel(),
        }
        return Frame(pl.DataFrame(columns).with_columns(pl.lit(float(found["deviation"])).alias("deviation")))

    def by_label(
        self, documents: Documents, label: str | None = None, *, column: str | None = None, n_jobs: int = 1
    ) -> pl.DataFrame:
        """Tabulate the topics' shares by label: a row for each label and topic.

        Documents have labels in a column `label`, unless `label` names another, and their texts in `text`, unless
        `column` does. Without one their label is null. `share` is the mean over the `documents` that hold a word of the
        model. Hidden topics are left out.
        """
        model = cast("Topics", self)
        corpus, labels = _grouped(model, with_column(documents, column, label=label), "label")
        known = labels.drop_nulls().unique().sort().to_list()
        number = {label: place for place, label in enumerate(known)}
        places = np.array([number.get(label, -1) for label in labels], np.int64)
        return _table(model, corpus, "label", known, places, n_jobs)


def _grouped(model: Topics, documents: Documents, column: str) -> tuple[Corpus, pl.Series]:
    """Encode documents over the model's words, and return the column that they are grouped by."""
    import polars as pl

    corpus = model.encode(documents)
    if column not in corpus.table.columns:
        raise InputError(
            f"the documents have no {column}s: give a table, or dicts, with a column '{column}' beside the texts, or "
            f"name another column, {column}='...'"
        )
    return corpus, corpus.table[column].cast(pl.String)


def _table(model: Topics, corpus: Corpus, key: str, groups: list[str], places: I64, n_jobs: int) -> pl.DataFrame:
    """Tabulate the mean shares of topics; place -1 is the group null, which comes last, if it is not empty."""
    import polars as pl

    from tertulia.models.frame import Frame

    sums, documents = _sums(model, corpus, np.where(places < 0, len(groups), places), len(groups) + 1, n_jobs)
    shown = [k for k in range(model.n_topics) if k not in model.hidden]
    rows = len(groups) + bool((places < 0).any())
    labels: list[str | None] = [*groups, None]
    shares = sums / np.maximum(documents, 1)[:, None]
    columns = {
        key: pl.Series([label for label in labels[:rows] for _ in shown], dtype=pl.String),
        "documents": np.repeat(documents[:rows], len(shown)),
        "topic": shown * rows,
        **({"name": [model.names[k] for k in shown] * rows} if any(model.names) else {}),
        "share": shares[:rows, shown].ravel(),
    }
    seen = pl.when(pl.col("documents") > 0).then(pl.col("share"))
    return Frame(pl.DataFrame(columns).with_columns(seen.alias("share")))


def _sums(model: Topics, corpus: Corpus, places: I64, rows: int, n_jobs: int) -> tuple[F64, I64]:
    """Compute the sum of shares [rows, K] and the number of documents [rows] of each group, without wordless ones."""
    silent = corpus.lengths == 0 if model.encoder is None else model.encoder.silent(corpus)
    counted = np.flatnonzero(~silent)
    sums = np.zeros((rows, model.n_topics))
    for start in range(0, len(counted), _BLOCK):
        chosen = counted[start : start + _BLOCK]
        np.add.at(sums, places[chosen], model.transform(corpus.select(chosen), n_jobs=n_jobs))
    return sums, np.bincount(places[counted], minlength=rows)
