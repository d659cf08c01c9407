"""Merging topics one to one: properties for all topics, and the calibration of xi."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.methods.ftm.alignment import (
    NOBODY,
    MergeWarning,
    align,
    are_alike,
    compare_parties,
    party_topics,
    share_of_nearer,
    similarities_within,
    warn_of_merge,
)
from tertulia.methods.ftm.integration import integrate
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


V = 400


def party_of(subjects, seed, tokens=300, sizes=None):
    """A party whose topics are what it saw of some subjects, with general words in each."""
    rng = np.random.default_rng(seed)
    general = 1 / np.arange(1, V + 1)
    phi = 0.5 * general / general.sum() + 0.5 * np.asarray(subjects)
    return party_topics(np.array([rng.dirichlet(tokens * t + 1e-3) for t in phi]), sizes)


def subjects_of(K, seed):
    return np.random.default_rng(seed).dirichlet(np.full(V, 0.05), K)


@pytest.mark.parametrize("K", [2, 3, 5, 10, 20, 40])
@pytest.mark.parametrize("tokens", [100, 1000])
def test_parties_of_the_same_subjects_are_alike_however_little_they_have_seen(K, tokens):
    """No distance decides: with a hundred tokens per topic means are several times as far apart as with a thousand."""
    for seed in range(5):
        subjects = subjects_of(K, seed)
        p, r = party_of(subjects, 10 + seed, tokens), party_of(subjects[::-1], 20 + seed, tokens)
        assert share_of_nearer(p, r) <= 2**K / math.comb(2 * K, K)
        assert are_alike(p, r)


@pytest.mark.parametrize("K", [10, 20, 40])
@pytest.mark.parametrize("tokens", [100, 1000])
def test_parties_of_other_subjects_are_not(K, tokens):
    assert not any(
        are_alike(party_of(subjects_of(K, seed), 10 + seed, tokens), party_of(subjects_of(K, 50 + seed), 20, tokens))
        for seed in range(5)
    )


def test_parties_may_have_other_numbers_of_topics():
    subjects = subjects_of(20, 0)
    split = np.concatenate([subjects, subjects[:10]])  # the second party has two topics of some subjects
    assert are_alike(party_of(subjects, 1), party_of(split, 2))
    assert not are_alike(party_of(subjects, 1), party_of(subjects_of(35, 3), 2))


def test_a_long_odd_document_makes_no_other_party():
    """Its words fill one of a party's topics, a third of all that it shows; the rest is as elsewhere."""
    subjects, odd = subjects_of(20, 0), np.zeros(V)
    odd[np.random.default_rng(2).choice(V, 40, replace=False)] = 1 / 40
    sizes = np.r_[np.full(20, 100), 10_000]
    there = party_of([*subjects, odd], 1, sizes=sizes)
    assert there.weights[-1] > 0.3
    assert are_alike(there, party_of(subjects, 2))


def test_a_party_is_alike_to_several_that_hold_most_of_their_documents():
    """The first two have the same topics, and count as alike; the third does to the first of them only."""
    here, there = party_of(subjects_of(20, 0), 1).topic_word, party_of(subjects_of(20, 9), 2).topic_word
    alike = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=bool)
    topics = [len(align([(here, n), (here, 40 - n), (there, 10)], None, 50, alike).topic_word) for n in (30, 10, 20)]
    assert topics[0] < topics[1] == topics[2] == 40


def test_parties_are_compared_when_the_later_one_comes_and_never_again():
    subjects, others = subjects_of(20, 0), subjects_of(20, 9)
    first = compare_parties([party_of(subjects, 1), party_of(others, 2)], NOBODY)
    assert first.tolist() == [[True, False], [False, True]]
    merged = party_of(subjects, 1)
    later = compare_parties([merged, merged, party_of(others, 3)], first)  # by now the two have the same topics
    assert later.tolist() == [[True, False, False], [False, True, False], [False, False, True]]
    again = compare_parties([merged, merged, party_of(subjects, 4)], first)
    assert again.tolist() == [[True, False, True], [False, True, True], [True, True, True]]


def test_topics_without_a_token_say_nothing():
    subjects = subjects_of(6, 0)
    sizes = np.array([0, 0, 0, 0, 0, 9])
    assert np.isfinite(share_of_nearer(party_of(subjects, 1, sizes=sizes), party_of(subjects, 2, sizes=sizes)))


@pytest.mark.parametrize(("topics", "sizes", "says"), [(3, (5, 4), "fewer"), (9, (5, 4), "side by side")])
def test_a_merge_that_did_nothing_or_too_much_is_reported(topics, sizes, says):
    with pytest.warns(MergeWarning, match=says):
        warn_of_merge(topics, sizes)


def test_other_merges_are_not(recwarn):
    warn_of_merge(6, (5, 4))
    warn_of_merge(5, (5,))
    assert not len(recwarn)


@pytest.mark.parametrize(
    ("sizes", "weights"),
    [
        (None, [1 / 3, 1 / 3, 1 / 3]),
        (np.array([0, 4, 9]), [0, 2 / 5, 3 / 5]),
        (np.zeros(3), [1 / 3, 1 / 3, 1 / 3]),  # reports may hold no token at all
    ],
)
def test_topics_count_by_the_root_of_their_sizes(sizes, weights):
    assert np.allclose(party_topics(np.eye(3), sizes).weights, weights)


def test_no_models_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        align([], None, 10)
