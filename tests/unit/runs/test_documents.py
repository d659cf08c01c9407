"""Recipes for parties' documents, from one source or from one each."""

import json

import pytest

from tertulia.errors import ConfigError
from tertulia.runs.documents import DataSettings, sources_of, split_of
from tertulia.runs.present_documents import pool_documents
from tertulia.runs.settings import RunSettings


def test_each_party_has_its_own_recipe():
    settings = RunSettings(parties={"north": {"path": "a.csv", "text": "note"}, "south": {"path": "b.csv"}})
    found = sources_of(settings)
    assert {party: (one["path"], one["text"]) for party, one in found.items()} == {
        "north": ("a.csv", "note"),
        "south": ("b.csv", "text"),
    }
    json.dumps(found)  # plain data


@pytest.mark.parametrize(
    ("data", "split"),
    [
        ({"shards": 2}, {"kind": "shards", "shards": 2, "seed": 3}),
        ({"party": "ward"}, {"kind": "column", "column": "ward"}),
        ({"split": "file"}, {"kind": "file"}),
        ({"split": "random", "sizes": {"a": 1.0}}, {"kind": "random", "sizes": {"a": 1.0}, "seed": 3}),
        (
            {"split": "dirichlet", "parties": ["a", "b"], "concentration": 0.1},
            {"kind": "dirichlet", "parties": ["a", "b"], "concentration": 0.1, "seed": 3},
        ),
    ],
)
def test_how_one_source_is_split(data, split):
    assert split_of(DataSettings(path="a.csv", **data), seed=3) == split


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "no parties are given"),
        ({"parties": {"north": {}}}, "parties.north has no `path`"),
        ({"data": {}}, r"\[data\] has no `path`"),
    ],
)
def test_missing_documents_are_named(settings, said):
    with pytest.raises(ConfigError, match=said):
        sources_of(RunSettings(**settings))


def test_pooled_documents_are_those_of_all_parties(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"rain over {name}\n")
    parties = {name: {"path": str(tmp_path / f"{name}.txt")} for name in ("a", "b")}
    assert pool_documents(RunSettings(parties=parties), None).n_documents == 2
