"""Documents of a topic as tables."""

import numpy as np
import pandas as pd
import pytest

import tertulia as tt
from tertulia.errors import InputError

MODEL = tt.Topics([[0.6, 0.4, 0.0], [0.0, 0.1, 0.9]], tt.Vocabulary(("rain", "sun", "money")), alpha=0.1)
ROWS = [
    {"text": "Rain.", "id": "a", "label": "x"},
    {"text": "Rain, rain and rain again, then sun; rain.", "id": "b", "label": "y"},
    {"text": "Money, money!", "id": "c", "label": "x"},
    {"text": "Nothing known", "id": "d", "label": "x"},
    {"text": "Rain.", "id": "e", "label": "z"},
]


def test_documents_are_those_above_a_share_largest_first_with_their_own_columns():
    found = MODEL.documents(0, ROWS)
    assert found.columns == ["document", "share", "words", "id", "label", "text"]
    assert found["document"].to_list() == [1, 0, 4]  # the document without a known word is in no topic
    assert found["text"].to_list()[:2] == [ROWS[1]["text"], "Rain."]
    np.testing.assert_allclose(
        found["share"], MODEL.transform([row["text"] for row in ROWS[:2] + ROWS[4:]])[[1, 0, 2], 0]
    )
    assert MODEL.documents(0, ROWS, min_share=0.0).height == 4
    assert MODEL.documents(1, ROWS)["id"].to_list() == ["c"]


def test_representative_documents_are_not_the_shortest_and_no_copies():
    assert MODEL.representative(0, ROWS)["id"].to_list() == ["b", "a"]
    assert MODEL.representative(0, ROWS, n=1)["id"].to_list() == ["b"]
    assert MODEL.representative(1, ROWS[:2]).height == 0  # in none of these it is the largest


def test_topics_by_name_and_documents_of_every_form():
    named = MODEL.rename({1: "finance"})
    frame = pd.DataFrame({"body": [row["text"] for row in ROWS]})
    assert named.documents("finance", frame, column="body")["document"].to_list() == [2]
    assert named.documents(-1, [["money"], ["rain"]])["text"].to_list() == ["money"]
    assert named.documents(0, [[2, 1, 0], [0, 0, 3]])["text"].to_list() == ["rain rain sun"]
    corpus = tt.Corpus.from_texts(["rain sun", "money"])
    assert named.documents("finance", corpus)["text"].to_list() == ["money"]


def test_wrong_arguments_are_named():
    with pytest.raises(InputError, match="topic = 2: give a number from 0 to 1"):
        MODEL.documents(2, ROWS)
    with pytest.raises(InputError, match="no topic is named 'finance': no topic has a name"):
        MODEL.representative("finance", ROWS)
    with pytest.raises(InputError, match="min_share = 2"):
        MODEL.documents(0, ROWS, min_share=2)
    with pytest.raises(InputError, match="n = 0"):
        MODEL.representative(0, ROWS, n=0)
