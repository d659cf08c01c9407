"""Word error rates and their intervals."""

import numpy as np
import pytest

from tertulia.applications.speech.evaluation import error_rate, word_errors
from tertulia.errors import InputError


def test_word_errors():
    pytest.importorskip("jiwer")
    said = [("buy", "the", "bonds"), ("sell",), (), ("a", "b", "c", "d")]
    heard = [("by", "the", "old", "bonds"), (), ("noise",), ("a", "x", "c", "d")]
    np.testing.assert_array_equal(word_errors(said, heard), [2, 1, 1, 1])
    np.testing.assert_array_equal(word_errors([()], [()]), [0])
    with pytest.raises(InputError, match="one for each"):
        word_errors(said, heard[:1])


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Documents differ in their error rates: intervals over documents hold the truth, 90 of 100 at least."""
    hits, rng = 0, np.random.default_rng(5)
    for trial in range(100):
        rates = np.repeat(rng.beta(4, 12, size=60), 5)  # mean 0.25
        errors = rng.binomial(12, rates)
        found = error_rate(errors, [12] * 300, [f"d{i // 5}" for i in range(300)], draws=500, seed=trial)
        hits += found.low <= 0.25 <= found.high
    assert 90 <= hits <= 99


def test_intervals_over_documents_are_wider_than_over_utterances():
    errors, documents = [10] * 50 + [0] * 50, [f"d{i // 10}" for i in range(100)]
    by_document = error_rate(errors, [10] * 100, documents)
    by_utterance = error_rate(errors, [10] * 100, [str(i) for i in range(100)])
    assert by_document.mean == by_utterance.mean == 0.5
    assert by_document.high - by_document.low > 2 * (by_utterance.high - by_utterance.low)
    assert error_rate(errors, [10] * 100, documents) == by_document  # the same draws
    with pytest.raises(InputError, match="one for each"):
        error_rate([1], [2, 3], ["a"])
