"""Words of one document alone against the threshold: drawn by the mechanism itself, with chances that can be seen."""

import math

import numpy as np
import pytest
from scipy import stats

from tertulia.privacy.mechanisms.word_union import BITS, WordUnion
from tertulia.privacy.noise import NoiseKey

DELTA, MOST, TRIALS = 0.1, 30, 20_000
WORST_P = 1e-4  # a sound mechanism fails one of these tests once in ten thousand keys


def named(choice: WordUnion, words: int) -> int:
    """In how many trials a word of a document is named, that no other document has."""
    weight = math.floor(2**BITS / math.sqrt(words))
    stream = NoiseKey.fixed(bytes([words]) * 32).stream("run", "release", f"{choice.epsilon}")
    return int(choice.apply(np.full((TRIALS, words), weight), stream).any(axis=1).sum())


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
@pytest.mark.parametrize("words", [1, 4, MOST])
def test_a_word_of_one_document_is_named_with_probability_delta_half_at_most(words, epsilon):
    choice = WordUnion("words", epsilon=epsilon, delta=DELTA, words_per_document=MOST)
    assert stats.binomtest(named(choice, words), TRIALS, DELTA / 2, alternative="greater").pvalue > WORST_P


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 10.0])
def test_the_threshold_is_no_higher_than_it_must_be(epsilon):
    """For one number of words, the probability is delta / 2, as far as can be seen."""
    choice = WordUnion("words", epsilon=epsilon, delta=DELTA, words_per_document=MOST)
    worst = max((1, MOST), key=lambda words: named(choice, words))
    assert stats.binomtest(named(choice, worst), TRIALS, DELTA / 2).pvalue > WORST_P
    lower = WordUnion("words", epsilon=epsilon, delta=DELTA * 1.3, words_per_document=MOST)
    assert stats.binomtest(named(lower, worst), TRIALS, DELTA / 2, alternative="greater").pvalue < WORST_P
