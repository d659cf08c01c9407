"""Topics keep their ids from model to model; new ones get new ids, and no id is given twice."""

import numpy as np
import pytest

from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.models import Topics
from tertulia.models.continuity import SAME, distance, keep_ids, shared_mass, side_by_side

WORDS = tuple("abcdef")
A, B, C = np.eye(3).repeat(2, axis=1) / 2  # of two words each


def model(*rows, words=WORDS, **parts):
    return Topics(np.array(rows), Vocabulary(words), **parts)


def test_topics_that_changed_places_get_their_ids_back():
    found = keep_ids(model(C, A, B, weights=np.array([0.5, 0.3, 0.2]), alpha=np.array([3.0, 1.0, 2.0])), model(A, B, C))
    assert found.ids == (0, 1, 2)
    assert found.retired == ()
    assert np.array_equal(found.topic_word, [A, B, C])
    assert found.weights.tolist() == [0.3, 0.2, 0.5]
    assert found.alpha.tolist() == [1.0, 2.0, 3.0]


def test_a_new_topic_gets_an_id_that_no_topic_ever_had():
    last = model(A, B, ids=(0, 4), retired=(7,))
    found = keep_ids(model(C, A), last)
    assert (found.ids, found.retired) == ((0, 8), (4, 7))
    again = keep_ids(model(B, A), found)  # a topic that comes back counts as new
    assert (again.ids, again.retired) == ((0, 9), (4, 7, 8))


def test_more_and_fewer_topics():
    assert keep_ids(model(A, B, C), model(B)).ids == (0, 1, 2)
    fewer = keep_ids(model(B), model(A, B, C))
    assert (fewer.ids, fewer.retired) == ((1,), (0, 2))


@pytest.mark.parametrize(("share", "kept"), [(SAME + 0.01, True), (SAME - 0.01, False)])
def test_a_topic_is_the_same_from_a_threshold_on(share, kept):
    found = keep_ids(model(share * A + (1 - share) * C), model(A))
    assert found.ids == ((0,) if kept else (1,))


def test_words_of_one_model_alone_are_not_shared():
    old = model([0.5, 0.5], words=("a", "gone"))
    new = model([0.3, 0.7], words=("new", "a"))
    assert shared_mass(*side_by_side(old, new)) == pytest.approx(0.5)
    (row,) = keep_ids(new, old).provenance["drift"]
    assert row["distance"] == pytest.approx(distance(np.array([0.5, 0.5, 0]), np.array([0.7, 0, 0.3])), abs=1e-4)


def test_drift_names_words_and_states():
    last, now = model(A, B, weights=np.array([0.4, 0.6])), model(0.9 * A + 0.1 * C, C, weights=np.array([0.25, 0.75]))
    kept, gone, new = keep_ids(now, last).provenance["drift"]
    assert (kept["topic"], kept["state"], kept["weight_before"], kept["weight"]) == (0, "kept", 0.4, 0.25)
    assert 0 < kept["distance"] < 0.5
    assert (gone["topic"], gone["state"], gone["went"][:2]) == (1, "retired", ["c", "d"])
    assert (new["topic"], new["state"], new["came"][:2]) == (2, "new", ["e", "f"])


def test_ids_are_saved_and_name_columns(tmp_path):
    known = keep_ids(model(B, C), model(A, B))
    loaded = Topics.load(known.save(tmp_path / "model"))
    assert loaded == known
    assert (loaded.ids, loaded.retired) == ((1, 2), (0,))
    assert loaded.get_feature_names_out().tolist() == ["topic1", "topic2"]
    assert loaded.topics_table()["topic"].to_list() == [0, 1]
    assert loaded.topics_table()["id"].to_list() == [1, 2]


def test_names_and_hidden_topics_go_with_their_ids():
    named = model(A, B).rename({1: "second"}).hide([1])
    known = keep_ids(model(B, C), named)
    assert (known.ids, known.names, known.hidden) == ((1, 2), ["second", ""], (0,))


def test_topics_that_are_merged_leave_one_id():
    merged = model(A, B, C).merge([[0, 2]])
    assert (merged.ids, merged.retired) == ((0, 1), (2,))


@pytest.mark.parametrize("ids", [{"ids": (0, 0)}, {"ids": (0,)}, {"ids": (0, 1), "retired": (1,)}, {"ids": (0, -1)}])
def test_ids_that_cannot_be(ids):
    with pytest.raises(InputError, match="ids"):
        model(A, B, **ids)
