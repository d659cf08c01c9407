"""What a unit adds to each sum, by taking it out; where clusters start; what can be learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError
from tertulia.methods.embedding_topics import clusters
from tertulia.methods.embedding_topics.budget import (
    BITS,
    PARTS,
    SUMS,
    Terms,
    Verdict,
    check_verdict,
    deviation,
    mechanism_of,
    threshold,
    verdict_or_none,
)
from tertulia.methods.embedding_topics.results import words_of_topics
from tertulia.methods.embedding_topics.settings import EmbeddingTopicsSettings
from tertulia.privacy.mechanisms.gaussian import epsilon_of

K, V, D = 3, 12, 5
WORDS = tuple(f"word{v}" for v in range(V))
ONE = 1.0 + 1e-9  # steps of 2^-14 are exact: nothing but the comparison is rounded


def encoded(rng, sizes):
    """Documents of units of these sizes: some empty, some without a vector, some with long vectors."""
    n = int(sum(sizes))
    texts = [[WORDS[v] for v in rng.integers(0, V, rng.integers(0, 30))] for _ in range(n)]
    corpus = Corpus.from_texts(texts).encode(Vocabulary(WORDS))
    vectors = clusters.unit_rows(rng.normal(size=(n, D))).astype(np.float32)
    vectors[rng.random(n) < 0.1] = 0
    return corpus, np.concatenate([[0], np.cumsum(sizes)]), vectors


def sums_of(corpus, starts, vectors, labels):
    found = clusters.encoded(corpus, starts, vectors, corpus.lengths % 5 - 1)
    return [
        clusters.sum_of_words(found, BITS),
        clusters.sum_of_vectors(found, BITS),
        clusters.sums_by_cluster(found, vectors, labels, K, BITS),
        clusters.words_by_cluster(found, labels, K, BITS),
        clusters.sizes_of(found, labels, K, BITS),
        clusters.periods_by_cluster(found, labels, K, 4, BITS),
    ]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 6), min_size=1, max_size=7))
def test_no_unit_moves_a_sum_by_more_than_one(seed, sizes):
    """Every unit is taken out once: documents by themselves, and users with several, whatever their clusters."""
    rng = np.random.default_rng(seed)
    corpus, starts, vectors = encoded(rng, sizes)
    labels = rng.integers(-1, K, corpus.n_documents)
    whole = sums_of(corpus, starts, vectors, labels)
    for unit in range(len(sizes)):
        kept = np.ones(corpus.n_documents, np.bool_)
        kept[starts[unit] : starts[unit + 1]] = False
        rest = [size for u, size in enumerate(sizes) if u != unit]
        others = sums_of(
            corpus.select(kept), np.concatenate([[0], np.cumsum(rest)]).astype(int), vectors[kept], labels[kept]
        )
        for one, other in zip(whole, others, strict=True):
            assert np.linalg.norm((one - other).astype(np.float64)) <= 2.0**BITS * ONE


def test_many_equal_documents_of_a_user_count_as_much_as_one_and_reach_the_bound():
    corpus = Corpus.from_texts([["word1", "word2"]] * 50).encode(Vocabulary(WORDS))
    vectors = np.tile(np.eye(D, dtype=np.float32)[0], (50, 1))
    for total in sums_of(corpus, np.array([0, 50]), vectors, np.zeros(50, np.int64)):
        assert 0.999 * 2**BITS < np.linalg.norm(total) <= 2**BITS * ONE


def test_the_two_ways_to_sum_vectors_agree():
    rng = np.random.default_rng(3)
    corpus, starts, vectors = encoded(rng, [1] * 40)
    labels = rng.integers(-1, K, 40)
    found = clusters.encoded(corpus, starts, vectors)
    dense = clusters.sums_by_cluster(found, vectors, labels, K, BITS)
    exact = np.zeros((K, D))
    np.add.at(exact, labels[labels >= 0], vectors[labels >= 0])
    assert np.abs(np.ldexp(dense.astype(float), -BITS) - exact).max() < 40 * 2.0**-BITS


def test_a_document_without_a_vector_is_in_no_cluster():
    vectors = np.array([[1, 0], [0, 0], [0, 2]], np.float32)
    assert clusters.nearest(vectors, np.eye(2)).tolist() == [0, -1, 1]
    moved = clusters.around(vectors, np.array([0.5, 0.0]))
    assert not moved[1].any()
    assert np.allclose(np.linalg.norm(moved[[0, 2]], axis=1), 1)


def test_clusters_without_documents_keep_their_start_and_seeds_stay_half_way():
    first = np.eye(3)
    sums = np.array([[0.0, 0, 0], [5.0, 0, 0], [0, 0, 7.0]])
    assert np.allclose(clusters.centroids_of(sums, first), [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert np.allclose(clusters.centroids_of(sums, first, seeded=2)[1], [np.sqrt(0.5), np.sqrt(0.5), 0])


def test_the_first_clusters_are_those_of_words_and_of_seeds():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.eye(4), 20, axis=0)
    vectors = clusters.unit_rows(groups + 0.1 * rng.normal(size=groups.shape)).astype(np.float32)
    found = clusters.first_centroids(vectors, np.ones(80), 4, 0)
    assert np.allclose(np.sort((found @ np.eye(4)).max(axis=1)), 1.0, atol=0.02)
    seeded = clusters.first_centroids(vectors, np.ones(80), 4, 0, [np.arange(40, 45)])
    assert seeded[0] @ np.eye(4)[2] > 0.98
    random = clusters.first_centroids(np.zeros((3, 6), np.float32), np.ones(3), 5, 1)
    assert np.allclose(np.linalg.norm(random, axis=1), 1)


# --- budget and verdict -----------------------------------------------------------------------------------------------


def test_the_parts_make_the_whole_budget_and_all_sums_together_keep_epsilon():
    assert sum(PARTS.values()) == pytest.approx(1.0)
    for epsilon in (1.0, 3.0, 8.0):
        terms = Terms(epsilon=epsilon)
        squares = sum((terms.moves if what == SUMS else 1) / deviation(what, terms) ** 2 for what in PARTS)
        assert 0.99 * epsilon < epsilon_of(np.sqrt(squares), 1e-6) <= epsilon
        assert mechanism_of(SUMS, terms).charge()["noise_multiplier"] == pytest.approx(deviation(SUMS, terms))


def test_noise_alone_shows_no_words():
    noise = np.random.default_rng(5).normal(0, 7.0, (10, 2_000))
    found = words_of_topics(noise, np.full(10, 100.0), np.zeros(2_000), 7.0)
    assert (found.weights > 0).sum() <= 3  # about once in two tables
    assert not found.live.any()
    assert threshold(7.0, 20_000) == pytest.approx(7 * np.sqrt(2 * np.log(20_000)))


def test_more_documents_a_larger_epsilon_and_shared_noise_give_more_topics():
    def live(documents, epsilon=3.0, louder=1.0, topics=20):
        return verdict_or_none(EmbeddingTopicsSettings(topics=topics, epsilon=epsilon), documents, louder).topics

    assert live(100) == 0
    assert live(200_000) == 20
    found = [live(n) for n in (2_000, 5_000, 20_000, 50_000)]
    assert found == sorted(found)
    assert live(20_000, louder=2.0) <= live(20_000) <= live(20_000, epsilon=8.0)
    assert verdict_or_none(EmbeddingTopicsSettings(), 1_000) is None
    with pytest.raises(ConfigError, match=r"nothing was spent\. Give more documents"):
        check_verdict(Verdict(0, 100, 1.0, "document"), left="nothing was spent")
    check_verdict(None, left="")
