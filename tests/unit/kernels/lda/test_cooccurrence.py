"""The leading eigenpairs of a noisy matrix, the number of topics in it, and first topics by anchor words."""

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.lda.cooccurrence import best_list, count_above, edge, spectrum, topics_of
from tertulia.metrics.similarity import match


def triangle(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def planted(n=160, K=4, documents=2000.0, seed=0):
    """Topics, each with words of its own, and the matrix of documents that have one topic each."""
    topics = np.random.default_rng(seed).dirichlet(np.full(n, 0.15), K)
    sizes = documents * np.array([0.4, 0.3, 0.2, 0.1])[:K]
    return topics, np.einsum("k,kv,kw->vw", sizes, topics, topics)


def test_eigenpairs_are_those_of_a_matrix_of_low_rank():
    _, matrix = planted()
    found = spectrum(triangle(matrix), len(matrix), 4)  # the diagonal is not given
    values = np.linalg.eigvalsh(matrix)[::-1][:4]
    assert np.allclose(found.values, values, rtol=0.2)  # a diagonal of 0 would be a third off
    assert np.allclose(found.vectors.T @ found.vectors, np.eye(4), atol=1e-9)
    low = (found.vectors * found.values) @ found.vectors.T
    assert np.abs(triangle(low - matrix)).max() < 0.05 * triangle(matrix).max()


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_has_no_topic(seed):
    n, s = 150, 3.0
    noise = np.random.default_rng(seed).normal(0, s, n * (n - 1) // 2)
    found = spectrum(noise, n, 10, s)
    assert count_above(found, s) <= 1  # the largest may lie a little beyond the edge
    assert found.values[0] < 1.1 * edge(s, n)
    assert count_above(spectrum(noise, n, 10, 0.5 * s), 0.5 * s) >= 5  # noise that is larger than declared shows


def test_topics_above_the_noise_are_counted_and_found():
    topics, matrix = planted()
    rng, counted = np.random.default_rng(3), []
    for s in (0.05, 0.4, 20.0):
        noisy = triangle(matrix) + rng.normal(0, s, len(matrix) * (len(matrix) - 1) // 2)
        found = spectrum(noisy, len(matrix), 8, s)
        counted.append(count_above(found, s))
        if s == 0.05:
            first = topics_of(found, 4, 2000.0 * topics.mean(axis=0), 2000.0)
            assert match(topics, first / first.sum(axis=1, keepdims=True)) > 0.97
    assert counted[0] == 4
    assert counted[0] >= counted[1] >= counted[2]
    assert counted[2] <= 1


def test_a_shorter_list_is_chosen_where_it_shows_more():
    rng, s = np.random.default_rng(5), 2.0
    _, few = planted(n=150, documents=6000.0)
    matrix = np.zeros((1200, 1200))
    matrix[:150, :150] = few  # rare words bring noise only
    pairs = triangle(matrix) + rng.normal(0, s, 1200 * 1199 // 2)
    found = best_list(pairs, np.arange(1200), np.arange(1200), 4, s)
    assert len(found.words) < 1200
    assert found.topics > count_above(spectrum(pairs, 1200, 4, s), s)
    assert found.words.tolist() == list(range(len(found.words)))


def test_the_longest_list_is_kept_where_all_topics_show():
    _, matrix = planted(n=320)
    order = np.argsort(-matrix.sum(axis=0))
    found = best_list(triangle(matrix), np.arange(320), order, 4, 1e-6)
    assert (len(found.words), found.topics) == (320, 4)


def test_another_number_of_pairs_is_refused():
    with pytest.raises(InputError, match="upper triangle of 5 words"):
        spectrum(np.zeros(9), 5, 2)
