import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.metrics.recovery import amwmd, dss, tss


def test_scores_of_the_truth_itself():
    random = np.random.default_rng(0)
    beta, theta = random.dirichlet(np.full(30, 0.1), 5), random.dirichlet(np.ones(5), 40)
    assert tss(beta, beta[::-1]) == pytest.approx(5)
    assert dss(theta, theta[:, ::-1]) == pytest.approx(0)


def test_scores_by_hand():
    true, found = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5]])
    assert tss(true, found) == pytest.approx(2 * np.sqrt(0.5))
    assert dss(true, np.array([[1.0, 0.0], [1.0, 0.0]])) == pytest.approx((1 + 1) / 2)
    with pytest.raises(InputError, match="must be the same"):
        dss(true, found)


def test_word_movers_distance_by_hand():
    vectors = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [0.0, 0.0]])  # the last word has none
    topics = np.array([[0.5, 0.3, 0.1, 0.1]])
    assert amwmd(topics, topics, vectors, top=2) == 0
    other = np.array([[0.0, 0.4, 0.3, 0.3]])
    assert amwmd(topics, other, vectors, top=2) == pytest.approx((1 + 2) / 2)  # 0 -> 1, 1 -> 3
    away = np.hypot(3, 1 - np.sqrt(10)) / np.sqrt(10)  # of length 1: word 1 stays, 0 -> 3 / sqrt(10)
    assert amwmd(topics, other, vectors, top=2, unit=True) == pytest.approx(away / 2)
    with pytest.raises(InputError, match="no top word with a vector"):
        amwmd(topics, other, np.zeros((4, 2)))
