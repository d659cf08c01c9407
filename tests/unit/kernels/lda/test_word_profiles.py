"""Profiles of words add up over parties, and words of one subject get one topic."""

import numpy as np
import pytest

from helpers.planted import planted
from tertulia.kernels.lda import word_profiles
from tertulia.kernels.lda.word_profiles import DIMENSIONS, counts_of_words, most_frequent, profiles, topics_of_profiles


def two_subjects(seed: int, D: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Documents of 12 tokens, each of words 0..9 or of words 10..19."""
    rng = np.random.default_rng(seed)
    words = (rng.integers(0, 10, (D, 12)) + 10 * (np.arange(D) % 2)[:, None]).astype(np.int32).ravel()
    return words, np.arange(D + 1, dtype=np.int64) * 12


def by_hand(words, documents, V, chosen, least):
    """Profiles in plain NumPy, from the definition."""
    D = len(documents) - 1
    tf = np.zeros((D, V))
    for d in range(D):
        np.add.at(tf[d], words[documents[d] : documents[d + 1]], 1)
    df = (tf > 0).sum(axis=0)
    weight = np.where(df >= least, np.log(D / np.maximum(df, 1)) + 1e-3, 0.0)
    rows = np.sqrt(tf) * weight
    rows /= np.maximum(np.sqrt((rows**2).sum(axis=1, keepdims=True)), 1e-300)
    projection = word_profiles.signs(np.uint64(0x5EED), np.arange(V))
    found = np.zeros((len(chosen), DIMENSIONS))
    for n, w in enumerate(chosen):
        held = rows[(tf[:, w] > 0) & (df[w] >= least)].copy()
        held[:, w] = 0.0
        found[n] = held.sum(axis=0) @ projection
    return found


@pytest.mark.parametrize("least", [1, 25])
def test_a_profile_is_the_sum_of_rows_without_the_word_itself(least):
    words, documents = two_subjects(1)
    chosen = np.array([0, 3, 11, 19])
    found, held = profiles(words, documents, 20, chosen, least)
    assert found == pytest.approx(by_hand(words, documents, 20, chosen, least), abs=1e-4)
    assert held.tolist() == counts_of_words(words, documents, 20, least)[0][chosen].tolist()


def test_rare_words_have_no_profile_and_are_in_none():
    words = np.array([0, 1, 2, 0, 1, 3, 0, 1, 4], np.int32)  # words 2, 3 and 4 are in one document each
    documents = np.array([0, 3, 6, 9], np.int64)
    df, tokens = counts_of_words(words, documents, 6, least=2)
    assert (df.tolist(), tokens.tolist()) == ([3, 3, 0, 0, 0, 0], [3, 3, 0, 0, 0, 0])
    without, _ = profiles(np.array([0, 1] * 3, np.int32), np.array([0, 2, 4, 6]), 6, np.array([0, 1, 2]), least=2)
    found, held = profiles(words, documents, 6, np.array([0, 1, 2]), least=2)
    assert np.array_equal(found, without)
    assert held.tolist() == [3, 3, 0]
    assert not found[2].any()


def test_projected_rows_keep_their_angles():
    projection = word_profiles.signs(np.uint64(0x5EED), np.arange(400)).astype(float)
    x, y = np.random.default_rng(2).random((2, 400))
    cosine = lambda a, b: a @ b / np.sqrt((a @ a) * (b @ b))  # noqa: E731
    assert cosine(x @ projection, y @ projection) == pytest.approx(cosine(x, y), abs=0.1)


def test_the_most_frequent_words_have_profiles():
    df = np.array([3, 0, 9, 1, 9])
    assert most_frequent(df).tolist() == [0, 2, 3, 4]
    assert len(most_frequent(np.ones(word_profiles.MOST_WORDS + 5))) == word_profiles.MOST_WORDS


def test_words_of_a_subject_get_one_topic():
    words, documents = two_subjects(3)
    tokens = counts_of_words(words, documents, 21, 1)[1]
    found, held = profiles(words, documents, 21, np.arange(20), 1)
    topics = topics_of_profiles(found, held, np.arange(20), tokens, 2, np.uint64(4))
    first = topics.argmax(axis=0)
    assert set(first[:10]) != set(first[10:20])
    assert len(set(first[:10])) == len(set(first[10:20])) == 1
    assert topics.sum(axis=0)[:20] == pytest.approx(tokens[:20])
    assert topics[:, 20].tolist() == [0.5, 0.5]  # without a profile: all topics alike


def test_topics_of_profiles_are_near_planted_ones():
    truth = planted(seed=5, D=400, length=60, V=200, K=5, alpha=0.05)
    words, documents = truth.words, truth.documents
    chosen = most_frequent(counts_of_words(words, documents, 200, 1)[0])
    tokens = counts_of_words(words, documents, 200, 1)[1]
    found, held = profiles(words, documents, 200, chosen, 1)
    topics = topics_of_profiles(found, held, chosen, tokens, 5, np.uint64(0))
    topics /= topics.sum(axis=1, keepdims=True)
    overlap = np.minimum(topics[:, None], truth.topics[None]).sum(axis=2)
    assert overlap.max(axis=0).min() > 0.6, overlap.round(2)


def test_another_key_may_find_other_topics_and_the_same_key_the_same():
    words, documents = two_subjects(6)
    tokens = counts_of_words(words, documents, 20, 1)[1]
    found, held = profiles(words, documents, 20, np.arange(20), 1)
    make = lambda key: topics_of_profiles(found, held, np.arange(20), tokens, 6, np.uint64(key))  # noqa: E731
    assert np.array_equal(make(1), make(1))
    assert any(not np.allclose(make(1), make(key)) for key in range(2, 6))
