"""Merging topics one to one: what holds whatever the topics are, and how xi is calibrated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.methods.ftm.alignment import (
    MergeWarning,
    align,
    are_alike,
    mean_topic,
    similarities_within,
    warn_of_merge,
)
from tertulia.methods.ftm.merging import integrate
from tertulia.metrics.similarity import top_words_sparse


def random_models(seed, parties=4, V=12):
    rng = np.random.default_rng(seed)
    return [
        (rng.dirichlet(np.full(V, 0.3), size=rng.integers(1, 5)), int(rng.integers(1, 100))) for _ in range(parties)
    ]


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([None, 0.05, 0.3, 0.9]))
def test_a_global_topic_is_the_weighted_mean_of_at_most_one_topic_of_each_party(seed, xi):
    models = random_models(seed)
    M, weights, part_of = align(models, xi, 6)
    sizes = [len(M_p) for M_p, _ in models]
    assert max(sizes) <= len(M) <= sum(sizes)
    for own in np.split(part_of, np.cumsum(sizes)[:-1]):
        assert len(set(own.tolist())) == len(own)
    rows, documents = np.concatenate([M_p for M_p, _ in models]), np.repeat([n for _, n in models], sizes)
    for z in range(len(M)):
        members = part_of == z
        assert np.allclose(M[z], np.average(rows[members], axis=0, weights=documents[members]))
        assert weights[z] == documents[members].sum()


def test_a_model_merged_with_itself_is_itself():
    M = np.eye(4) * 0.7 + 0.075
    merged, weights, _ = align([(M, 10), (M[::-1], 30)], None, 4)
    assert np.allclose(merged, M)
    assert np.array_equal(weights, [40.0] * 4)


def test_topics_do_not_chain():
    """Each is similar to the next, the first and the last share no word: union-find makes one topic of them."""
    steps = np.array([[4, 4, 2, 0, 0, 0], [0, 4, 4, 2, 0, 0], [0, 0, 4, 4, 2, 0], [0, 0, 0, 4, 4, 2]]) / 10
    models = [(steps, 5), (steps, 5)]
    assert len(integrate(models, 0.3, 6).topic_word) == 1
    merged = align(models, 0.3, 6)
    assert np.allclose(merged.topic_word, steps)


def test_similarities_within_a_party_are_of_different_topics():
    M = np.array([[0.5, 0.5, 0.0, 0.0], [0.5, 0.4, 0.1, 0.0], [0.0, 0.0, 0.5, 0.5]])
    assert similarities_within(top_words_sparse(M, 4)).max() < 1
    assert len(similarities_within(top_words_sparse(M[:1], 4))) == 0  # a party of one topic tells nothing


def test_topics_of_alike_parties_merge_at_similarities_that_keep_those_of_others_apart():
    """Here and there draw on the same words; elsewhere half of them are other ones, and so are all subjects."""
    rng = np.random.default_rng(1)
    V, K = 300, 8
    general = rng.dirichlet(np.full(V, 0.5))

    def party(subjects):
        return np.array([rng.dirichlet(300 * (0.5 * t + 0.5 * general) + 1e-3) for t in subjects]), 100

    subjects, others = np.zeros((2, K, V))
    subjects[:, :150] = rng.dirichlet(np.full(150, 0.1), K)
    others[:, 150:] = rng.dirichlet(np.full(150, 0.1), K)
    here, there, elsewhere = party(subjects), party(subjects), party(others)
    together = align([here, there], None, 50)
    assert np.array_equal(together.part_of[:K], together.part_of[K:])
    assert len(align([here, elsewhere], None, 50).topic_word) == 2 * K


def test_a_long_odd_document_makes_no_other_party():
    """Its words fill one of a party's topics, two fifths of all that it shows; the rest is as elsewhere."""
    rng = np.random.default_rng(2)
    V = 500
    usual = rng.dirichlet(np.full(V, 0.5))
    odd = np.zeros(V)
    odd[rng.choice(V, 40, replace=False)] = 1 / 40
    assert are_alike(0.6 * usual + 0.4 * odd, usual)
    assert not are_alike(0.3 * usual + 0.7 * rng.dirichlet(np.full(V, 0.5)), usual)


@pytest.mark.parametrize(("topics", "sizes", "says"), [(3, (5, 4), "fewer"), (9, (5, 4), "side by side")])
def test_a_merge_that_did_nothing_or_too_much_is_told(topics, sizes, says):
    with pytest.warns(MergeWarning, match=says):
        warn_of_merge(topics, sizes)


def test_other_merges_are_not(recwarn):
    warn_of_merge(6, (5, 4))
    warn_of_merge(5, (5,))
    assert not len(recwarn)


def test_topics_count_for_the_mean_by_the_root_of_their_sizes():
    topics = np.eye(3)
    assert np.allclose(mean_topic(topics, None), 1 / 3)
    assert np.allclose(mean_topic(topics, np.array([0, 4, 9])), [0, 2 / 5, 3 / 5])
    assert np.allclose(mean_topic(topics, np.zeros(3)), 1 / 3)  # reports may hold no token at all


def test_no_models_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        align([], None, 10)
