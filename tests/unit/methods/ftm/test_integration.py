"""Algorithms 3 and 4 against slow, literal versions of the papers' formulas."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from helpers.marks import slow
from tertulia.methods.ftm.integration import Merged, accept, compose, integrate, keep_supported, union_find


def literal_rho(a, b, top):
    """(29) word by word."""
    best = [sorted(range(len(p)), key=lambda w: (-p[w], w))[:top] for p in (a, b)]
    common = set(best[0]) & set(best[1])
    overlap = sum(min(a[w], b[w]) for w in common)
    return overlap / (sum(a[w] for w in best[0]) + sum(b[w] for w in best[1]) - overlap)


def literal_integrate(models, xi, top):
    """Algorithm 3, line by line."""
    M, weights = [], []
    for model, documents in models:
        M = [*M, *model]
        weights = [*weights, *[float(documents)] * len(model)]
        sets = [{i} for i in range(len(M))]
        for i in range(len(M)):
            for j in range(i + 1, len(M)):
                if literal_rho(M[i], M[j], top) >= xi:
                    (one,) = [s for s in sets if i in s]
                    (two,) = [s for s in sets if j in s]
                    if one is not two:
                        sets.remove(two)
                        one |= two
        sets.sort(key=min)
        merged = [sum(weights[i] * M[i] for i in s) / sum(weights[i] for i in s) for s in sets]
        M, weights = merged, [sum(weights[i] for i in s) for s in sets]
    return np.array(M), np.array(weights)


def random_models(seed, parties=3, V=12):
    rng = np.random.default_rng(seed)
    return [
        (rng.dirichlet(np.full(V, 0.3), size=rng.integers(1, 5)), int(rng.integers(1, 100))) for _ in range(parties)
    ]


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.3, 0.6]), st.sampled_from([3, 6, 12]))
def test_integrate_is_algorithm_3(seed, xi, top):
    models = random_models(seed)
    M, weights, part_of = integrate(models, xi, top)
    expected, expected_weights = literal_integrate(models, xi, top)
    assert M.shape == expected.shape
    assert np.allclose(M, expected)
    assert np.allclose(weights, expected_weights)
    rows = np.concatenate([model for model, _ in models])
    documents = np.repeat([float(n) for _, n in models], [len(model) for model, _ in models])
    shares = (part_of == np.arange(len(M))[:, None]) * documents / weights[:, None]
    assert np.allclose(shares @ rows, M)  # each global topic is the mean of those that went into it


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.6]))
def test_sparse_rows_merge_like_dense_ones(seed, xi):
    models = [(np.where(M < 0.02, 0.0, M), n) for M, n in random_models(seed)]
    models = [(M / M.sum(axis=1, keepdims=True), n) for M, n in models]
    M, weights, _ = integrate(models, xi, 6)
    found, found_weights, _ = integrate([(sparse.csr_array(M_p), n) for M_p, n in models], xi, 6)
    assert sparse.issparse(found)
    assert np.allclose(found.toarray(), M)
    assert np.allclose(found_weights, weights)


@pytest.mark.parametrize(("n", "K", "seconds"), [(12, 250, 3), slow(50, 1_000, 30)])  # a third of it on an idle core
def test_many_parties_of_many_topics_merge_within_seconds(n, K, seconds):
    rng = np.random.default_rng(0)
    V, top = 50_000, 500
    shared = rng.integers(0, V, (K, top))  # half of each party's topics resemble these

    def party() -> sparse.csr_array:
        words = np.where(rng.random((K, 1)) < 0.5, shared, rng.integers(0, V, (K, top)))
        values = np.sort(rng.dirichlet(np.full(top, 0.5), K))[:, ::-1]
        return sparse.csr_array((values.ravel(), (np.repeat(np.arange(K), top), words.ravel())), (K, V))

    models = [(party(), 100) for _ in range(n)]
    integrate(models[:2], 0.3, 50)  # compile
    started = time.process_time()
    M, weights, _ = integrate(models, 0.3, 50)
    assert time.process_time() - started < seconds
    assert M.shape[0] < 0.6 * n * K
    assert np.isclose(weights.sum(), n * K * 100)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 0.6]))
def test_weights_are_conserved_and_rows_stay_distributions(seed, xi):
    models = random_models(seed, parties=5)
    M, weights, _ = integrate(models, xi, 6)
    assert np.isclose(weights.sum(), sum(len(m) * n for m, n in models))
    assert np.allclose(M.sum(axis=1), 1)


def test_merging_a_model_with_itself_is_the_identity():
    M = np.eye(4) * 0.7 + 0.075
    merged, weights, part_of = integrate([(M, 10), (M, 30)], 0.6, 4)
    assert np.allclose(merged, M)
    assert np.array_equal(weights, [40.0] * 4)
    assert np.array_equal(part_of, [0, 1, 2, 3, 0, 1, 2, 3])


@settings(max_examples=100)
@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_union_find_gives_connected_components(case):
    n, edges = case
    linked = np.zeros((n, n), bool)
    for i, j in edges:
        linked[i, j] = linked[j, i] = True
    reach = np.linalg.matrix_power(np.eye(n, dtype=int) + linked, n) > 0
    left, right = np.nonzero(np.triu(linked))
    assert np.array_equal(union_find(n, left, right), [np.flatnonzero(row)[0] for row in reach])


def literal_compose(M, M_p, xi, top, literal):
    """Algorithm 4, line by line."""
    left, composed = list(range(len(M))), []
    for z_p in M_p:
        best = max(left, key=lambda z: (literal_rho(z_p, M[z], top), -z), default=None)
        similar = best is not None and literal_rho(z_p, M[best], top) >= xi
        composed.append(M[best] if similar else z_p)
        if best is not None and (similar or literal):
            left.remove(best)
    return np.array(composed)


@settings(max_examples=80)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.3, 0.5]), st.booleans())
def test_compose_is_algorithm_4(seed, xi, literal):
    (M, _), (M_p, _) = random_models(seed, parties=2)
    assert np.allclose(compose(M, M_p, xi, 6, literal=literal), literal_compose(M, M_p, xi, 6, literal))


def test_a_stricter_party_keeps_what_is_not_similar_enough():
    own = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    offered = np.array([[0.6, 0.3, 0.1], [0.7, 0.2, 0.1]])
    assert literal_rho(own[0], offered[0], 3) > 0.6 > literal_rho(own[1], offered[1], 3)
    assert np.array_equal(accept(offered, own, 0.6, 3), [offered[0], own[1]])


def test_no_models_is_an_error():
    with pytest.raises(ValueError, match="at least one"):
        integrate([], 0.3, 10)


def test_support_counts_parties_and_not_topics():
    # Three parties with two, three and one topic: the first global topic has one party, the second one party twice.
    merged = Merged(np.eye(3), np.ones(3), np.array([0, 2, 1, 1, 2, 2]))
    sizes = [2, 3, 1]
    assert keep_supported(merged, sizes, 1).tolist() == [True, True, True]
    assert keep_supported(merged, sizes, 2).tolist() == [False, False, True]
    assert keep_supported(merged._replace(part_of=np.array([0, 2, 0, 1, 2, 2])), sizes, 2).tolist() == [
        True,
        False,
        True,
    ]
    assert keep_supported(merged, sizes, 3).tolist() == [False, False, True]
