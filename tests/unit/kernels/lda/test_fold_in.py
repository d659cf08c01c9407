"""Fold-in against a literal version of its formula, and at its edges."""

from itertools import pairwise

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.lda import fold_in


def literal(words, documents, topic_word, alpha, iterations):
    """The formula of the module's first lines, in float64, document by document."""
    shares = []
    for start, stop in pairwise(documents):
        theta = np.ones(len(topic_word))
        phi = topic_word[:, words[start:stop]]  # [K, tokens]
        phi = phi[:, phi.sum(axis=0) > 0]
        for _ in range(iterations):
            responsibility = theta[:, None] * phi
            theta = alpha + (responsibility / responsibility.sum(axis=0)).sum(axis=1)
        shares.append(theta / theta.sum())
    return np.array(shares)


@pytest.fixture
def corpus():
    generator = np.random.default_rng(1)
    documents = np.concatenate([[0], np.cumsum(generator.integers(0, 60, size=80))])
    return generator.integers(0, 50, size=documents[-1]), documents


@pytest.mark.parametrize("K", [1, 3, 33])
@pytest.mark.parametrize("iterations", [1, 20])
def test_equals_the_literal_version(corpus, K, iterations):
    generator = np.random.default_rng(K)
    topics, alpha = generator.dirichlet(np.full(50, 0.1), size=K), generator.gamma(1.0, size=K)
    theta = fold_in.theta(*corpus, topics, alpha, iterations)
    assert theta.shape == (80, K)
    assert theta.dtype == np.float64
    assert np.allclose(theta, literal(*corpus, topics, alpha, iterations), atol=2e-5)
    assert np.allclose(theta.sum(axis=1), 1.0, atol=1e-6)


def test_threads_do_not_change_a_bit(corpus):
    topics = np.random.default_rng(2).dirichlet(np.ones(50), size=10)
    one, two, four = (fold_in.theta(*corpus, topics, 0.1, threads=t) for t in (1, 2, 4))
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)


def test_an_empty_document_gets_the_prior_mean():
    theta = fold_in.theta(np.array([0]), np.array([0, 0, 1, 1]), np.array([[1.0], [0.5]]), np.array([1.0, 3.0]))
    assert np.allclose(theta[[0, 2]], [0.25, 0.75])
    assert theta[1, 0] > 0.25


def test_no_document_at_all():
    assert fold_in.theta(np.array([], int), np.array([0]), np.ones((2, 3)), 0.1).shape == (0, 2)


def test_words_without_mass_are_ignored_and_tiny_mass_still_counts():
    topics = np.array([[0.5, 0.0, 1e-60], [0.5, 0.0, 3e-60]])
    alone = fold_in.theta(np.array([2, 2, 0]), np.array([0, 3]), topics, 1.0)
    beside = fold_in.theta(np.array([2, 1, 1, 2, 0, 1]), np.array([0, 6]), topics, 1.0)
    assert np.array_equal(alone, beside)
    assert alone[0, 1] > 0.6


def written(K, documents, seed=5):
    """Documents of 20 to 200 tokens, each of a few of K topics over 400 words, and the topics."""
    generator = np.random.default_rng(seed)
    topics = generator.dirichlet(np.full(400, 0.05), size=K)
    lengths = generator.integers(20, 201, size=documents)
    texts = [generator.choice(400, size=n, p=generator.dirichlet(np.full(K, 4.0 / K)) @ topics) for n in lengths]
    return np.concatenate(texts), np.concatenate([[0], np.cumsum(lengths)]), topics


@pytest.mark.parametrize(("tolerance", "bound"), [(fold_in.TOLERANCE, 0.06), (1e-4, 1e-3)])
@pytest.mark.parametrize("K", [5, 100])
def test_settled_shares_are_those_of_500_plain_iterations(K, tolerance, bound):
    *documents, topics = written(K, 150)
    settled = fold_in.settle(*documents, topics, 0.1, tolerance=tolerance)
    assert np.allclose(settled.sum(axis=1), 1.0, atol=1e-6)
    assert np.abs(settled - fold_in.theta(*documents, topics, 0.1, 500)).max() < bound


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_before_the_first_look_ahead_steps_are_plain(corpus, iterations):
    topics, alpha = np.random.default_rng(3).dirichlet(np.full(50, 0.1), size=33), np.linspace(0.1, 1.0, 33)
    settled = fold_in.settle(*corpus, topics, alpha, iterations, tolerance=0.0)
    assert np.allclose(settled, literal(*corpus, topics, alpha, iterations), atol=2e-5)


def test_threads_do_not_change_a_bit_of_settled_shares():
    *documents, topics = written(40, 200)
    one, two, three = (fold_in.settle(*documents, topics, 0.1, threads=t) for t in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_a_documents_settled_shares_depend_on_no_other_document():
    words, offsets, topics = written(40, 60)
    together = fold_in.settle(words, offsets, topics, 0.1)
    texts = [words[a:b] for a, b in pairwise(offsets)]
    for d in (0, 7, 59):
        assert np.array_equal(fold_in.settle(texts[d], np.array([0, len(texts[d])]), topics, 0.1)[0], together[d])
    order = np.random.default_rng(1).permutation(60)
    moved = np.concatenate([[0], np.cumsum([len(texts[d]) for d in order])])
    assert np.array_equal(
        fold_in.settle(np.concatenate([texts[d] for d in order]), moved, topics, 0.1), together[order]
    )


def test_settled_shares_at_the_edges():
    assert fold_in.settle(np.array([], int), np.array([0]), np.ones((2, 3)), 0.1).shape == (0, 2)
    assert fold_in.settle(np.array([0, 0]), np.array([0, 2]), np.ones((1, 1)), 0.1).tolist() == [[1.0]]
    theta = fold_in.settle(np.array([0]), np.array([0, 0, 1, 1]), np.array([[1.0], [0.5]]), np.array([1.0, 3.0]))
    assert np.allclose(theta[[0, 2]], [0.25, 0.75])
    topics = np.array([[0.5, 0.0, 1e-60], [0.5, 0.0, 3e-60]])
    alone = fold_in.settle(np.array([2, 2, 0]), np.array([0, 3]), topics, 1.0)
    beside = fold_in.settle(np.array([2, 1, 1, 2, 0, 1]), np.array([0, 6]), topics, 1.0)
    assert np.array_equal(alone, beside)
    assert alone[0, 1] > 0.6


@pytest.mark.parametrize("tolerance", [-0.1, np.nan])
def test_a_tolerance_that_is_no_share_is_named(tolerance):
    with pytest.raises(InputError, match="tolerance"):
        fold_in.settle(np.array([0]), np.array([0, 1]), np.ones((2, 3)), 0.1, tolerance=tolerance)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": np.array([0, 3])}, "outside 0..2"),
        ({"words": np.array([0, -1])}, "outside 0..2"),
        ({"documents": np.array([0, 3])}, "rise from 0"),
        ({"documents": np.array([0, 3, 2])}, "rise from 0"),
        ({"documents": np.array([], int)}, "flat"),
        ({"topic_word": np.ones(3)}, r"\[topics, words\]"),
        ({"topic_word": np.array([[1.0, np.nan, 0.0]])}, "non-finite"),
        ({"topic_word": np.ones((0, 3))}, "K = 0"),
        ({"alpha": 0.0}, "positive"),
        ({"alpha": np.ones(3)}, "one for each of the 2 topics"),
        ({"iterations": 0}, "at least 1"),
        ({"threads": 0}, "at least 1"),
    ],
)
def test_bad_input_is_named(change, message):
    good = {"words": np.array([0, 2]), "documents": np.array([0, 2]), "topic_word": np.ones((2, 3)), "alpha": 0.1}
    with pytest.raises(InputError, match=message):
        fold_in.theta(**{**good, **change})
