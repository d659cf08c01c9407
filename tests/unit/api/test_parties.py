"""Whose documents are whose: one table with a column of parties, and plain sentences for what is no federation."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tertulia as tt
from tertulia.api.parties import parties_of
from tertulia.errors import ConfigError, InputError

TABLE = {"text": ["Rain fell.", "Money grew.", "Rivers rose."], "agency": ["n", "s", "n"], "id": ["1", "2", "3"]}


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, lambda t: pl.DataFrame(t).to_dicts()])
def test_a_table_of_any_library_is_split_by_a_column(make):
    found = parties_of(make(TABLE), "agency")
    assert found == {
        "n": {"text": ["Rain fell.", "Rivers rose."], "id": ["1", "3"]},
        "s": {"text": ["Money grew."], "id": ["2"]},
    }


def test_a_corpus_is_split_by_its_labels():
    corpus = tt.Corpus.from_texts(TABLE["text"], labels=TABLE["agency"])
    found = parties_of(corpus, "label")
    assert [(name, part.n_documents) for name, part in found.items()] == [("n", 2), ("s", 1)]


def test_fit_of_a_split_table_equals_fit_of_its_parts():
    texts = [f"rain river water flood {i % 7}" for i in range(40)] + [
        f"money bank loan debt {i % 5}" for i in range(40)
    ]
    names = ["a", "b"] * 40
    method = tt.Consensus(topics=2, rounds=2)
    whole = method.fit(pd.DataFrame({"body": texts, "who": names}), party="who", column="body")
    parts = method.fit({name: [t for t, own in zip(texts, names, strict=True) if own == name] for name in "ab"})
    np.testing.assert_array_equal(whole.topic_word, parts.topic_word)
    assert list(whole.provenance["parties"]) == ["a", "b"]


def test_what_is_no_federation_is_said_in_a_sentence():
    method = tt.Consensus(topics=2)
    for given, said in (
        (["a text"], "this is one list: give one for each party"),
        (pd.DataFrame(TABLE), "this is one table: name the column that says whose a row is"),
        (Path("notes.csv"), r"this is one path: read each party's file, .*tt.read\('notes.csv'\)"),
        ("notes.csv", "this is one path"),
        (tt.Corpus.from_texts(["Rain."]), "this is one corpus"),
        (7, "of type int"),
    ):
        with pytest.raises(InputError, match=f"`fit` trains several parties, and .*{said}"):
            method.fit(given)
    with pytest.raises(InputError, match="there are no parties"):
        method.fit({})
    with pytest.raises(InputError, match="party = 'ward': there is no such column, only"):
        method.fit(TABLE, party="ward")
    with pytest.raises(InputError, match="2 of 3 rows have no party in 'agency'"):
        method.fit({**TABLE, "agency": ["n", None, " "]}, party="agency")
    with pytest.raises(InputError, match="names a column, and these documents are no table"):
        method.fit(["a text"], party="agency")
    with pytest.raises(InputError, match="is it the right column"):
        method.fit({"text": ["a"] * 2000, "id": list(range(2000))}, party="id")


def test_documents_that_are_none_are_said_in_a_sentence():
    with pytest.raises(InputError, match=r"the documents are a path: `tt.read\('notes.csv'\)` reads the file"):
        tt.LDA().fit(Path("notes.csv"))
    for given, kind in ((None, "None"), (3, "of type int")):
        with pytest.raises(InputError, match=f"the documents are {kind}: give a list of texts"):
            tt.LDA().fit(given)
    with pytest.raises(ConfigError, match="topics = 10: give the numbers to try, such as"):
        tt.choose_topics(["a"], topics=10)
