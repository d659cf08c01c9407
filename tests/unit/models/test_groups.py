"""Topics over time and by label."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tertulia as tt
from tertulia.errors import ConfigError, InputError

MODEL = tt.Topics([[0.6, 0.4, 0.0], [0.0, 0.1, 0.9]], tt.Vocabulary(("rain", "sun", "money")), alpha=0.1)
ROWS = [
    {"text": "rain rain sun", "date": "2025-11-03", "label": "b"},
    {"text": "money money", "date": "2025-11-30", "label": "a"},
    {"text": "money", "date": "2026-01-01", "label": "a"},
    {"text": "unknown", "date": "2026-01-02", "label": "a"},
    {"text": "rain", "date": "soon", "label": None},
]


def test_a_row_for_each_period_and_topic_with_the_number_of_documents():
    table = MODEL.over_time(ROWS)
    assert table.columns == ["period", "documents", "topic", "share"]
    periods = ["2025-11", "2025-12", "2026-01", None]
    assert table["period"].to_list() == [period for period in periods for _ in range(2)]
    assert table["documents"].to_list() == [2, 2, 0, 0, 1, 1, 1, 1]
    shares = MODEL.transform([row["text"] for row in ROWS if row["text"] != "unknown"])
    np.testing.assert_allclose(table["share"].to_list()[:2], shares[:2].mean(axis=0))
    assert table["share"].to_list()[2:4] == [None, None]  # nothing was written in December
    np.testing.assert_allclose(table["share"].to_list()[4:], shares[2:].ravel())


def test_quarters_years_and_dates_of_a_frame():
    assert MODEL.over_time(ROWS[:4], "quarter")["period"].unique(maintain_order=True).to_list() == [
        "2025-Q4",
        "2026-Q1",
    ]
    assert MODEL.over_time(ROWS[:4], "year")["period"].unique(maintain_order=True).to_list() == ["2025", "2026"]
    days = [datetime.date(2025, 11, 3), datetime.date(2025, 12, 1)]
    for frame in (
        pl.DataFrame({"body": ["rain", "sun"], "date": days}),
        pd.DataFrame({"body": ["rain", "sun"], "date": pd.to_datetime(days)}),
    ):
        assert MODEL.over_time(frame, column="body")["period"].to_list() == ["2025-11"] * 2 + ["2025-12"] * 2


def test_by_label_small_groups_are_shown_with_their_counts():
    table = MODEL.rename({1: "finance"}).hide([0]).by_label(ROWS)
    assert table.select("label", "documents", "topic", "name").rows() == [
        ("a", 2, 1, "finance"), ("b", 1, 1, "finance"), (None, 1, 1, "finance"),
    ]  # fmt: skip
    assert table["share"][0] > 0.9 > 0.2 > table["share"][1]


def test_what_is_missing_is_named():
    with pytest.raises(
        InputError, match=r"the documents have no dates: give a table, or dicts, with a column 'date' .*date="
    ):
        MODEL.over_time(["rain"])
    with pytest.raises(InputError, match="no date can be read"):
        MODEL.over_time([{"text": "rain", "date": "soon"}])
    with pytest.raises(ConfigError, match="by = 'week': write month, quarter, year"):
        MODEL.over_time(ROWS, "week")
    with pytest.raises(InputError, match="no labels"):
        MODEL.by_label(["rain"])


def test_columns_may_have_other_names():
    rows = [{"body": row["text"], "created": row["date"], "ward": row["label"], "label": "?"} for row in ROWS]
    assert MODEL.by_label(rows, "ward", column="body").equals(MODEL.by_label(ROWS))
    assert MODEL.over_time(pl.DataFrame(rows), date="created", column="body").equals(MODEL.over_time(ROWS))
    corpus = tt.Corpus.from_texts([row["text"] for row in ROWS], ids=[f"row {i}" for i in range(5)])
    assert MODEL.by_label(corpus, "id")["label"].to_list()[-1] == "row 4"
    with pytest.raises(InputError, match="no column 'ward', only"):
        MODEL.by_label(ROWS, "ward")
    with pytest.raises(InputError, match="the corpus has no column 'ward'"):
        MODEL.by_label(corpus, "ward")
    with pytest.raises(InputError, match="label = 'ward': only tables"):
        MODEL.by_label(["rain"], "ward")
