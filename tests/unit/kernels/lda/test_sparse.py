"""The sparse sampler and its parts: columns of words, guide tables and rows of phi."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.planted import counts_of, uneven
from tertulia.errors import InputError
from tertulia.kernels.core.guide_table import guide_table, search
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import sparse
from tertulia.kernels.lda.sparse_phi import SHORT, count, mean_rows, phi_rows
from tertulia.kernels.lda.word_columns import check_topic_count, columns

V, K, BETA = 60, 40, 0.1
ALPHA = np.linspace(0.05, 0.3, K)


@pytest.fixture(scope="module")
def corpus():
    return uneven(V, K)


def looked_up(rows, w, k):
    """The mass that the table of word w holds for topic k."""
    table = slice(rows.tables[w], rows.tables[w + 1])
    return rows.slot_mass[table][rows.slot_topics[table] == k].sum()


def swept(corpus, rows, threads):
    words, documents, z = corpus
    z = z.copy()
    changed = sparse.sweep(words, documents, z, rows, derive(3), threads)
    return z, changed


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.integers(0, 5), max_size=30))
def test_columns_are_a_stable_sort(words):
    starts, places = columns(np.array(words, dtype=np.int32), V=6)
    assert np.array_equal(np.argsort(places), np.argsort(words, kind="stable"))
    assert np.array_equal(np.diff(starts), np.bincount(np.array(words, dtype=int), minlength=6))


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=20), st.floats(0.0, 1.0, exclude_max=True))
def test_a_climb_ends_where_the_running_sum_passes_the_goal(weights, u):
    weights = np.array([*weights, 1.0])
    upto = np.cumsum(weights)
    assert search(*guide_table(weights), u) == min(np.searchsorted(upto, u * upto[-1], "right"), len(weights) - 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_counts_are_those_of_the_topics(corpus, threads):
    words, _, z = corpus
    starts, topics, counts = count(columns(words, V), z, K, threads)
    cwk = np.zeros((V, K))
    cwk[np.repeat(np.arange(V), np.diff(starts)), topics] = counts
    assert np.array_equal(cwk, counts_of(words, z, V, K))
    assert len(topics) == np.count_nonzero(cwk)


def test_rows_and_their_tables_hold_the_mean_of_phi(corpus):
    words, _, z = corpus
    rows = mean_rows(columns(words, V), z, ALPHA, BETA, threads=2)
    cwk = counts_of(words, z, V, K)
    assert np.allclose(rows.scale, 1.0 / (cwk.sum(axis=0) + V * BETA))
    assert rows.floor.upto[-1] == pytest.approx((ALPHA * BETA / (cwk.sum(axis=0) + V * BETA)).sum())
    lengths, slots = np.diff(rows.starts), np.diff(rows.tables)
    assert np.array_equal(slots > 0, lengths > SHORT)
    assert np.any(slots > 0)
    for w in np.flatnonzero(slots):
        assert [looked_up(rows, w, k) for k in range(K)] == list(cwk[w])
        share = (ALPHA * cwk[w] / (cwk.sum(axis=0) + V * BETA)).sum()
        assert rows.upto[rows.starts[w + 1] - 1] == pytest.approx(share, rel=1e-5)


def test_a_sweep_gives_the_same_bits_at_any_number_of_threads(corpus):
    words, _, z = corpus
    results = [swept(corpus, mean_rows(columns(words, V), z, ALPHA, BETA, threads), threads) for threads in (1, 2, 5)]
    for topics, changed in results:
        assert np.array_equal(topics, results[0][0])
        assert changed == np.count_nonzero(topics != z)
    assert 0 < results[0][1] < len(z)
    assert 0 <= results[0][0].min() <= results[0][0].max() < K


def test_a_topic_without_mass_is_never_drawn(corpus):
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    phi[:, 5:9] = 0.1
    phi[0, 5] = 0.0
    topics, _ = swept(corpus, phi_rows(phi, ALPHA, threads=1), threads=1)
    assert set(topics) == {5, 6, 7, 8}
    assert 5 not in topics[corpus[0] == 0]


def test_tokens_of_a_word_without_any_mass_stay_where_they_are(corpus):
    phi = np.full((V, padded_width(K)), 0.01, dtype=np.float32)
    phi[3] = 0.0
    topics, changed = swept(corpus, phi_rows(phi, ALPHA, threads=1), threads=1)
    assert np.array_equal(topics[corpus[0] == 3], corpus[2][corpus[0] == 3])
    assert changed > 0


def test_words_that_the_model_has_never_seen_are_drawn_from_what_all_words_share(corpus):
    words, _, z = corpus
    rows = mean_rows(columns(words[:0], V), z[:0], ALPHA, BETA, threads=1)
    assert swept(corpus, rows, threads=1)[1] > 0


def test_no_tokens_no_harm():
    nothing = freeze([], np.int32), freeze([0, 0], np.int64), np.empty(0, dtype=np.int32)
    rows = mean_rows(columns(nothing[0], V), nothing[2], ALPHA, BETA, threads=2)
    assert swept(nothing, rows, threads=2)[1] == 0


def test_ten_thousand_topics_and_a_million_words_need_no_matrix():
    generator = np.random.default_rng(1)
    words = freeze(generator.integers(0, 1_000_000, size=20_000), np.int32)
    many = words, freeze(np.arange(0, 20_001, 50), np.int64), generator.integers(0, 10_000, 20_000).astype(np.int32)
    tracemalloc.start()
    rows = mean_rows(columns(words, 1_000_000), many[2], np.full(10_000, 1e-3), BETA, threads=1)
    _, changed = swept(many, rows, threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert changed > 0
    assert peak < 200e6  # float32 phi alone would take 40e9


def test_more_topics_than_two_bytes_can_name_are_refused():
    check_topic_count(65_536)
    with pytest.raises(InputError, match="65537"):
        check_topic_count(65_537)
