"""Collapsed Gibbs in blocks: what a sweep counts on the way, and the same bits at any number of threads."""

from itertools import pairwise

import numpy as np
import pytest

from helpers.blocked_law import Sweep
from helpers.planted import counts_of, uneven
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked, priors

V, K, BETA = 60, 9, 0.05
ALPHA = np.linspace(0.05, 0.4, K)


def sweeps(threads, n=3, others=None):
    """Counts, topics, what the sweeps found, and their counts added up."""
    words, documents, z = uneven(V, K)
    z = z.copy()
    counts = blocked.count(words, z, V, K, others=others)
    total = (n * counts.cells).astype(np.int32).reshape(-1)
    found = [
        blocked.sweep(
            words, documents, z, counts, ALPHA, BETA, derive(7, s), blocked.Average(total, n - s), threads=threads
        )
        for s in range(n)
    ]
    return z, counts, found, total


@pytest.mark.parametrize("threads", [2, 3])
def test_same_bits_at_any_number_of_threads(threads):
    one, more = sweeps(1), sweeps(threads)
    assert np.array_equal(one[0], more[0])
    assert all(np.array_equal(a, b) for a, b in zip(one[1], more[1], strict=True))
    assert np.array_equal(one[3], more[3])
    for a, b in zip(one[2], more[2], strict=True):
        assert a.changed == b.changed > 0
        assert np.array_equal(a.histogram, b.histogram)
        assert a.log_likelihood == b.log_likelihood


def test_more_threads_than_words_and_documents():
    """Threads count the moves of ranges of words, of which there are fewer."""
    words, documents = freeze([0, 1, 1, 0, 1], np.int32), freeze([0, 3, 5], np.int64)
    ends = []
    for threads in (1, 7):
        z = np.array([0, 1, 2, 1, 0], dtype=np.int32)
        counts = blocked.count(words, z, 2, 3)
        changed = [blocked.sweep(words, documents, z, counts, ALPHA[:3], BETA, derive(s), threads=threads).changed
                   for s in range(9)]  # fmt: skip
        assert np.array_equal(counts.cells[:, :3], counts_of(words, z, 2, 3))
        ends.append((z.tolist(), changed))
    assert ends[0] == ends[1]
    assert max(ends[0][1]) > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_counts_and_histogram_are_those_of_the_topics(threads):
    words, documents, before = uneven(V, K)
    z, counts, found, _ = sweeps(threads, n=1)
    assert found[0].changed == (z != before).sum()
    assert np.array_equal(counts.cells[:, :K], counts_of(words, z, V, K))
    assert not counts.cells[:, K:].any()
    assert np.array_equal(counts.topics, np.bincount(z, minlength=K))
    assert np.array_equal(found[0].histogram, priors.histograms(documents, z, K).topics)


@pytest.mark.parametrize("threads", [1, 2])
def test_others_are_counted_and_stay_what_they_are(threads):
    words, documents, z = uneven(V, K)
    others = np.random.default_rng(2).integers(0, 9, size=(V, K)).astype(np.int32)
    kept = others.copy()
    new, own, added = blocked.run_beside(words, documents, z, others, ALPHA, BETA, [3], False, threads)
    assert np.array_equal(own, counts_of(words, new, V, K))
    assert added.shape == (V, 0)
    assert np.array_equal(others, kept)
    alone, *_ = blocked.run_beside(words, documents, z, np.zeros_like(others), ALPHA, BETA, [3], False, threads)
    assert (alone != new).any()


def test_sweeps_beside_others_are_added_up():
    words, documents, z = uneven(V, K)
    others = np.random.default_rng(2).integers(0, 9, size=(V, K)).astype(np.int32)
    ends, expected = z, np.zeros((V, K))
    for key in (3, 4):
        ends, own, _ = blocked.run_beside(words, documents, ends, others, ALPHA, BETA, [key], False)
        expected += own
    at_once = blocked.run_beside(words, documents, z, others, ALPHA, BETA, [3, 4], True)
    assert all(np.array_equal(a, b) for a, b in zip(at_once, (ends, own, expected), strict=True))


def test_the_log_likelihood_is_that_of_every_token_given_all_others(monkeypatch):
    """In one block, where counts of words stand still, against the sum in plain Python."""
    monkeypatch.setattr(blocked, "BLOCKS", 1)
    words, documents, before = uneven(V, K)
    words, documents, before = words[: documents[40]], documents[:41], before[: documents[40]]
    counts, z = blocked.count(words, before, V, K), before.copy()
    law = Sweep(counts.cells[:, :K].astype(float), ALPHA, BETA)
    found = blocked.sweep(words, documents, z, counts, ALPHA, BETA, derive(1))
    logs = [law.document(words[a:b], before[a:b], z[a:b])[1] for a, b in pairwise(documents) if b > a]
    assert found.log_likelihood == pytest.approx(sum(logs), rel=1e-5)


def test_the_log_likelihood_of_single_tokens_is_that_of_the_prior(monkeypatch):
    """A document of one token says nothing of its topic: sum over k of alpha_k phi_kw, the token left out of C_wk."""
    monkeypatch.setattr(blocked, "BLOCKS", 1)
    words, z = freeze([0, 0, 1, 2, 2, 2], np.int32), np.array([0, 1, 1, 0, 0, 1], dtype=np.int32)
    alpha, beta = np.array([0.3, 0.6]), 0.5
    cells, expected = counts_of(words, z, 3, 2), 0.0
    for w, k in zip(words, z, strict=True):
        left = cells[w] - (np.arange(2) == k)
        expected += np.log((alpha * (left + beta) / (cells.sum(axis=0) + 3 * beta)).sum() / alpha.sum())
    counts = blocked.count(words, z, 3, 2)
    found = blocked.sweep(words, freeze(np.arange(7), np.int64), z, counts, alpha, beta, derive(1))
    assert found.log_likelihood == pytest.approx(expected, abs=1e-4)


def test_a_move_counts_for_all_sweeps_that_are_left():
    words, documents, z = uneven(V, K)
    z, counts, added = z.copy(), blocked.count(words, z, V, K), np.zeros((V, K))
    for s in range(3):
        blocked.sweep(words, documents, z, counts, ALPHA, BETA, derive(7, s))
        added += counts_of(words, z, V, K)
    assert np.array_equal(sweeps(1)[3].reshape(counts.cells.shape)[:, :K], added)


def test_others_counts_that_are_as_large_as_can_be_do_not_wrap():
    words, z = np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int32)
    found = blocked.count(words, z, 2, 2, others=np.full((2, 2), 2**31 - 1, dtype=np.int32))
    assert found.cells.min() >= 0
    assert found.cells[0, 0] == 2**31
    assert found.topics.tolist() == [2 * (2**31 - 1) + 3, 2 * (2**31 - 1)]
