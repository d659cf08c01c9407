"""Comparison of the topics of two models."""

import numpy as np
import pytest

import tertulia as tt

WORDS = tt.Vocabulary(("rain", "sun", "cloud", "money", "bank", "loan"))
WEATHER, MONEY = [0.5, 0.3, 0.2, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.5, 0.3, 0.2]
MIXED, COLD = [0.2, 0.2, 0.1, 0.3, 0.1, 0.1], [0.4, 0.1, 0.5, 0.0, 0.0, 0.0]


def model(*rows):
    return tt.Topics(np.array(rows), WORDS)


def test_topics_are_matched_only_here_or_only_there():
    table = model(WEATHER, MIXED).compare(model(MONEY, WEATHER), words=3, min_similarity=0.4)
    assert table.select("state", "topic", "other").rows() == [
        ("matched", 0, 1), ("only here", 1, None), ("only there", None, 0),
    ]  # fmt: skip
    # nearest: MIXED and MONEY share .3 + .1 + .1, MIXED and WEATHER .2 + .2 + .1
    assert table["similarity"].to_list() == pytest.approx([1.0, 0.5 / 1.5, 0.5 / 1.5])
    assert table.select("both", "here", "there").rows() == [
        ("rain sun cloud", "", ""), ("", "money rain sun", ""), ("", "", "money bank loan"),
    ]  # fmt: skip


def test_words_that_differ_are_shown():
    (row,) = model(WEATHER).compare(model(COLD), words=2).iter_rows(named=True)
    assert (row["state"], row["both"], row["here"], row["there"]) == ("matched", "rain", "sun", "cloud")
    assert row["similarity"] == pytest.approx(0.7 / 1.3)


def test_a_topic_has_one_partner_at_most():
    table = model(WEATHER, COLD).compare(model(WEATHER), min_similarity=0.1)
    assert table["state"].to_list() == ["matched", "only here"]
    assert table["topic"].to_list() == [0, 1]


def test_names_are_shown_and_hidden_topics_are_not():
    here = model(WEATHER, MONEY).rename({0: "weather"}).hide([1])
    there = model(WEATHER, MONEY).rename({1: "finance"})
    table = here.compare(there)
    assert table.columns[:5] == ["state", "topic", "name", "other", "other_name"]
    assert table.select("state", "name", "other_name").rows() == [
        ("matched", "weather", ""),
        ("only there", None, "finance"),
    ]
    assert "name" not in model(WEATHER).compare(model(WEATHER)).columns


def test_estimators_compare_as_their_topics_do():
    texts = ["rain rain sun rain", "money money bank money"] * 20
    one, other = (tt.LDA(topics=2, sweeps=5, random_state=seed).fit(texts) for seed in (0, 1))
    assert one.compare(other).equals(one.topics_.compare(other.topics_))
    assert one.compare(one)["similarity"].to_list() == [1.0, 1.0]
