"""Documents in memory become a corpus: tables of any library, lists of tokens, generators."""

import pandas as pd
import polars as pl
import pytest

import tertulia as tt
from tertulia.corpus import TextOptions
from tertulia.corpus.counts import is_matrix
from tertulia.corpus.inputs import as_corpus, with_column
from tertulia.errors import InputError

TEXTS = ["Rain fell. Rivers rose.", "Bridges held."]
ROWS = [{"text": text, "id": str(number)} for number, text in enumerate(TEXTS)]


class Dataset:
    """The interface of `datasets.Dataset`: names of columns, columns by name, and rows as dicts."""

    def __init__(self, rows):
        self._rows = rows

    @property
    def column_names(self):
        return list(self._rows[0])

    def __getitem__(self, key):
        return [row[key] for row in self._rows] if isinstance(key, str) else self._rows[key]

    def __iter__(self):
        return iter(self._rows)


class Cells(list):
    """A column of pyarrow, whose cells are not Python values."""

    def to_pylist(self):
        return [str(cell) for cell in self]


class ArrowTable:
    """The interface of `pyarrow.Table`: `column_names`, and `columns`, which are not names."""

    column_names = ("text", "id")
    columns = (Cells(TEXTS), Cells(["0", "1"]))

    def __getitem__(self, name):
        return self.columns[self.column_names.index(name)]


TABLES = {
    "dicts": lambda: ROWS,
    "a generator of dicts": lambda: (row for row in ROWS),
    "columns by name": lambda: {"text": TEXTS, "id": [0, 1]},
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "polars, lazy": lambda: pl.LazyFrame(ROWS),
    "datasets": lambda: Dataset(ROWS),
    "pyarrow": ArrowTable,
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind):
    corpus = as_corpus(None, TABLES[kind]())
    assert corpus.table["id"].to_list() == ["0", "1"]
    assert corpus.vocabulary.words == ("rain", "fell", "rivers", "rose", "bridges", "held")
    assert not is_matrix(with_column(TABLES[kind](), None))
    renamed = as_corpus(None, with_column(TABLES[kind](), "id"), TextOptions(numbers=True, min_length=1))
    assert renamed.vocabulary.words == ("0", "1")
    with pytest.raises(InputError, match="the table has no column 'body', only"):
        with_column(TABLES[kind](), "body")


def test_a_dictionary_of_tables_is_no_table():
    splits = Dataset(ROWS)
    type(splits).column_names, kept = {"train": ["text"], "test": ["text"]}, type(splits).column_names
    try:
        with pytest.raises(InputError, match=r"several tables, train, test: give one, such as documents\['train'\]"):
            as_corpus(None, splits)
    finally:
        type(splits).column_names = kept


@pytest.mark.parametrize(
    "tokens",
    [
        [["Rain", "fell"], ("rain",), [], None],
        [{"text": ["Rain", "fell"]}, {"text": ["rain"]}, {"text": []}, {"text": None}],
        pl.DataFrame({"text": [["Rain", "fell"], ["rain"], [], None]}),
        pd.DataFrame({"text": [["Rain", "fell"], ["rain"], [], None]}),
    ],
    ids=["lists", "dicts", "polars", "pandas"],
)
def test_lists_of_tokens_are_taken_as_they_are(tokens):
    corpus = as_corpus(None, tokens)
    assert corpus.vocabulary.words == ("Rain", "fell", "rain")
    assert corpus.lengths.tolist() == [2, 1, 0, 0]
    assert as_corpus(None, tokens, TextOptions(ngrams=2)).vocabulary.words == ("Rain", "fell", "Rain_fell", "rain")


def test_texts_and_lists_are_not_mixed():
    with pytest.raises(InputError, match="document 1 of party 'north' is no list of words, as others are"):
        as_corpus("north", [["rain"], "rain"])
    with pytest.raises(InputError, match="text 1 is a list, but not of words"):
        as_corpus(None, [["rain"], [7]])
    with pytest.raises(InputError, match="text 1 is int, not str"):
        as_corpus(None, ["rain", 7])


def test_a_generator_serves_training_and_transforming():
    shares = tt.LDA(topics=2, sweeps=5, vocabulary={"min_documents": 1}).fit_transform(text for text in TEXTS * 3)
    assert shares.shape == (6, 2)


def test_tables_become_pandas_without_pyarrow(monkeypatch):
    model = tt.LDA(topics=2, sweeps=5, vocabulary={"min_documents": 1}).fit([{**row, "label": "x"} for row in ROWS])
    monkeypatch.setattr("tertulia.models.frame.find_spec", lambda name: None)
    table = model.topics_table(3)
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame["words"].tolist() == table["words"].to_list()
    assert frame["weight"].dtype == "float64"
    labels = model.by_label([{**ROWS[0], "label": "a"}, {**ROWS[1], "label": None}]).to_pandas()
    assert labels["label"].isna().sum() == 2
    assert model.compare(model).to_pandas()["similarity"].tolist() == [1.0, 1.0]


def test_a_column_of_another_name_serves_a_saved_model():
    model = tt.LDA(topics=2, sweeps=5, vocabulary={"min_documents": 1}).fit(TEXTS).topics_
    assert model.transform(pl.DataFrame({"body": TEXTS}), column="body").shape == (2, 2)
