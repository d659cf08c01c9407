import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from tertulia.errors import InputError
from tertulia.metrics import Tops, match, similar_pairs, top_words_sparse, weighted_jaccard

masses = st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 0.75, 1.0, 3.0])  # ties and zeros are common


def matrices(words=6):
    return st.integers(1, 4).flatmap(lambda K: arrays(np.float64, (K, words), elements=masses))


def literal_jaccard(p, q, L):
    """Eq. 17/29 word for word: each topic's top-L words, ties by word index."""
    top_p = sorted(range(len(p)), key=lambda w: (-p[w], w))[:L]
    top_q = sorted(range(len(q)), key=lambda w: (-q[w], w))[:L]
    common = sum(min(p[w], q[w]) for w in top_p if w in top_q)
    both = sum(p[w] for w in top_p) + sum(q[w] for w in top_q)
    return common / (both - common) if common else 0.0


@settings(max_examples=200)
@given(matrices(), matrices(), st.integers(1, 8))
def test_weighted_jaccard_is_the_papers_formula(p, q, L):
    rho = weighted_jaccard(top_words_sparse(p, L), top_words_sparse(q, L))
    expected = [[literal_jaccard(a, b, L) for b in q] for a in p]
    np.testing.assert_allclose(rho, expected, atol=1e-12)
    assert np.all((rho >= 0) & (rho <= 1))


@settings(max_examples=100)
@given(matrices(), matrices(), st.integers(1, 8))
def test_weighted_jaccard_is_symmetric_and_one_on_itself(p, q, L):
    a, b = top_words_sparse(p, L), top_words_sparse(q, L)
    np.testing.assert_allclose(weighted_jaccard(a, b), weighted_jaccard(b, a).T, atol=1e-12)
    own = np.diag(weighted_jaccard(a, a))
    assert np.array_equal(own, (p.max(axis=1) > 0).astype(float))  # exactly 1, but for a topic without mass


@settings(max_examples=100)
@given(matrices(), matrices(), st.integers(1, 8), st.sampled_from([0.05, 0.3, 1.0]))
def test_similar_pairs_are_the_large_entries_of_the_matrix(p, q, L, at_least):
    a, b = top_words_sparse(p, L), top_words_sparse(q, L)
    rho, pairs = weighted_jaccard(a, b), similar_pairs(a, b, at_least)
    rows, columns = np.nonzero(rho >= at_least)
    assert pairs.rows.tolist() == rows.tolist()
    assert pairs.columns.tolist() == columns.tolist()
    np.testing.assert_array_equal(pairs.similarity, rho[rows, columns])


def test_more_similar_pairs_than_the_first_guess_are_all_found():
    tops = Tops(np.zeros((40, 1), np.int32), np.ones((40, 1)))  # 1600 pairs, all equal
    assert len(similar_pairs(tops, tops, 1.0).rows) == 1600


@settings(max_examples=200)
@given(matrices(), st.integers(1, 8))
def test_top_words_are_sorted_by_mass_then_index(p, L):
    tops = top_words_sparse(p, L)
    expected = [sorted(range(p.shape[1]), key=lambda w: (-row[w], w))[:L] for row in p]
    assert tops.indices.tolist() == expected
    np.testing.assert_array_equal(tops.values, np.take_along_axis(p, tops.indices.astype(int), axis=1))


@settings(max_examples=100)
@given(matrices(), st.integers(1, 8))
def test_sparse_rows_have_the_same_top_words_without_the_zeros(p, L):
    dense, thin = top_words_sparse(p, L), top_words_sparse(sparse.csc_matrix(p), L)
    np.testing.assert_array_equal(thin.values, dense.values)
    np.testing.assert_array_equal(thin.indices, np.where(dense.values > 0, dense.indices, -1))


def test_top_words_of_unsorted_csr_rows_break_ties_by_index():
    row = sparse.csr_matrix((np.array([0.5, 0.5]), np.array([3, 1]), np.array([0, 2])), shape=(1, 4))
    assert top_words_sparse(row, 1).indices.tolist() == [[1]]


def test_match_finds_permuted_topics():
    true = np.random.default_rng(0).dirichlet(np.full(30, 0.1), size=5)
    assert match(true, true[[3, 1, 4, 0, 2]]) == pytest.approx(1.0)
    assert match(true, true[:4]) == pytest.approx(0.8)  # one true topic was not found
    assert match(np.eye(2, 4), np.eye(4)[2:]) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: top_words_sparse(np.ones((2, 3)), 0), "L = 0"),
        (lambda: top_words_sparse(np.ones(3), 2), "topics, words"),
        (lambda: top_words_sparse(np.array([[0.5, np.nan]]), 1), "non-finite"),
        (lambda: top_words_sparse(sparse.csr_matrix([[0.5, -1.0]]), 1), "negative"),
        (lambda: match(np.ones((2, 3)), np.ones((2, 4))), "cannot be matched"),
        (lambda: similar_pairs(*[top_words_sparse(np.ones((2, 3)), 1)] * 2, 0.0), "at_least = 0.0"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(InputError, match=words):
        call()
