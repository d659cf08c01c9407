"""An earlier model as a start: old words in their places, new ones with the prior's mass, and room for new topics."""

import numpy as np

from tertulia.corpus import Vocabulary
from tertulia.methods.common.earlier_model import (
    TOKENS,
    faded,
    give_way,
    new_topics,
    pseudo_counts,
    smooth,
    unexplained,
)
from tertulia.methods.common.vocabulary import extend_words
from tertulia.models import Topics

LAST = Topics(np.array([[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]]), Vocabulary(("sun", "rain", "wind")))


def test_known_words_keep_their_places_and_none_is_retired():
    assert extend_words(("sun", "rain"), ("hail", "sun"), None) == ("sun", "rain", "hail")
    assert extend_words(("sun", "rain"), ("hail", "fog"), 3) == ("sun", "rain", "hail")
    assert extend_words(("sun", "rain"), ("hail",), 1) == ("sun", "rain")


def test_new_words_begin_with_the_mass_of_the_prior():
    counts = pseudo_counts(LAST, ("sun", "rain", "wind", "hail"))
    assert counts.tolist() == [[0.75 * TOKENS, 0.25 * TOKENS, 0, 0], [0, 0.5 * TOKENS, 0.5 * TOKENS, 0]]
    phi = smooth(counts, 0.01)
    assert np.allclose(phi[:, 3], 0.01 / (TOKENS + 0.04))
    assert np.allclose(phi.sum(axis=1), 1)
    assert np.array_equal(smooth(counts, 0.01, np.array([0, 3])), phi[:, [0, 3]])


def test_topics_fade_by_what_was_expected_of_them():
    counts = np.array([[50, 50], [3, 2], [100, 95]])
    assert faded(counts).tolist() == [False, True, False]
    assert faded(counts, np.array([0.4, 0.02, 0.58])).tolist() == [False, False, False]


def test_what_topics_do_not_explain_begins_a_new_one():
    topics = smooth(np.array([[50.0, 50, 0, 0, 0], [0, 0, 50, 50, 0], [40, 0, 60, 0, 0]]), 0.01)
    counts = np.array([[500, 510, 0, 0, 0], [0, 0, 500, 480, 300], [400, 0, 590, 0, 0]])
    missing = unexplained(topics, counts)
    assert missing.sum(axis=1).argmax() == 1
    assert missing[1].argmax() == 4
    assert new_topics(topics, counts, 1)[0].argmax() == 4
    assert not new_topics(topics, counts[:, [0, 1, 2, 3, 4]] * [1, 1, 1, 1, 0], 2).any()  # nothing to begin with
    assert new_topics(topics, counts, 5).shape == (5, 5)


def test_words_that_are_new_in_all_topics_are_the_usual_growth():
    topics = smooth(np.array([[50.0, 50, 0, 0, 0, 0], [0, 0, 50, 50, 0, 0]]), 0.01)
    assert unexplained(topics, np.array([[500, 500, 0, 0, 99, 0], [0, 0, 500, 500, 0, 99]])).sum() < 1


def test_the_smallest_topic_gives_way_to_more_than_it_holds():
    topics = smooth(np.array([[50.0, 50, 0, 0, 0], [0, 0, 50, 50, 0], [50, 0, 50, 0, 0]]), 0.01)
    counts = np.array([[500, 500, 0, 0, 0], [0, 0, 500, 480, 900], [150, 0, 150, 0, 0]])
    assert give_way(topics, counts, None, 0).tolist() == [False, False, True]
    assert give_way(topics, counts, None, 1).tolist() == [False, False, False]  # there is another place for it
    counts[1, 4] = 100
    assert give_way(topics, counts, None, 0).tolist() == [False, False, False]
