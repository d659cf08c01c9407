"""Spherical k-means and its seeds: each step as written down plainly, the same bits at any number of threads."""

import numpy as np
import pytest

from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import LANES, padded_width
from tertulia.kernels.lda import kmeans

D, V, KEY = 300, 120, derive(3)


@pytest.fixture
def rows():
    """Documents of other lengths, some without a word."""
    generator = np.random.default_rng(4)
    words = [np.sort(generator.choice(V, n, replace=False)) for n in generator.integers(0, 30, size=D)]
    values = [generator.gamma(1.0, size=len(own)) for own in words]
    values = [own / max(np.linalg.norm(own), 1e-9) for own in values]
    starts = np.concatenate(([0], np.cumsum([len(own) for own in words])))
    sizes = np.array([2.0 * len(own) for own in words])
    kinds = (np.int64, np.int32, np.float32, np.float32)
    arrays = (starts, np.concatenate(words), np.concatenate(values), sizes)
    return kmeans.Rows(*(x.astype(kind) for x, kind in zip(arrays, kinds, strict=True)))


def dense(rows):
    found = np.zeros((D, V))
    np.add.at(found, (np.repeat(np.arange(D), np.diff(rows.starts)), rows.words), rows.values)
    return found


def plain(rows, seeds, steps):
    """The same in a few lines of numpy."""
    x, centres = dense(rows), dense(rows)[seeds]
    for _ in range(steps):
        labels = (x @ centres.T).argmax(axis=1)
        for k in np.unique(labels):
            total = (x * rows.sizes[:, None])[labels == k].sum(axis=0)
            centres[k] = total / max(np.linalg.norm(total), 1e-12)
    return centres, (x @ centres.T).argmax(axis=1)


@pytest.mark.parametrize("K", [1, LANES, 37])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_steps_are_those_of_k_means(rows, K, steps):
    seeds = np.random.default_rng(K).choice(np.flatnonzero(rows.sizes), K, replace=False)
    centres, labels = kmeans.find_centres(rows, V, seeds, steps, 1)
    expected, nearest = plain(rows, seeds, steps)
    assert centres.shape == (V, padded_width(K))
    assert np.allclose(centres[:, :K].T, expected, atol=1e-5)
    assert not centres[:, K:].any()
    assert np.array_equal(labels, nearest)
    assert np.array_equal(kmeans.nearest(rows, K, centres, 1), nearest)


def test_a_cluster_without_documents_keeps_its_centre(rows):
    """At first all documents are nearest to the first of two equal seeds."""
    seed = int(np.argmax(rows.sizes))
    centres, _ = kmeans.find_centres(rows, V, np.array([seed, seed]), 1, 1)
    assert np.allclose(centres[:, 1], dense(rows)[seed], atol=1e-6)
    assert not np.allclose(centres[:, 0], dense(rows)[seed], atol=1e-2)


@pytest.mark.parametrize("threads", [2, 3])
def test_same_bits_at_any_number_of_threads(rows, threads):
    seeds = np.arange(0, D, 7)
    one, many = (kmeans.find_centres(rows, V, seeds, 5, n) for n in (1, threads))
    assert np.array_equal(one[0].view(np.uint32), many[0].view(np.uint32))
    assert np.array_equal(one[1], many[1])
    for alone, together in zip(*(kmeans.likeness(rows, V, len(seeds), one[1], n) for n in (1, threads)), strict=True):
        assert np.array_equal(alone, together)


def test_likeness_is_of_sums_of_rows(rows):
    labels = np.random.default_rng(1).integers(0, 20, size=D).astype(np.int32)
    products, sizes = kmeans.likeness(rows, V, 21, labels, 2)
    sums = np.zeros((21, V))
    np.add.at(sums, labels, dense(rows) * rows.sizes[:, None])
    assert np.allclose(products, sums @ sums.T, rtol=1e-4)
    assert np.allclose(sizes, np.bincount(labels, rows.sizes, 21))


def by_the_rule(rows, K):
    """Seeds as the module describes them, in numpy."""
    alike, best, found, n = dense(rows) @ dense(rows).T, np.zeros(D), [], kmeans.CANDIDATES
    for k in range(K):
        upto = np.cumsum(rows.sizes * np.maximum(1 - best, 1e-6) ** 6)
        draws = [((int(derive(KEY, n * k + c)) >> 12) + 0.5) * 2.0**-52 * upto[-1] for c in range(n)]
        candidates = np.searchsorted(upto, draws, side="right")
        gains = [(rows.sizes * np.maximum(best, alike[c])).sum() for c in candidates]
        found.append(candidates[int(np.argmax(gains))])
        best = np.maximum(best, alike[found[-1]])
    return found


def test_seeds_follow_the_rule(rows):
    assert kmeans.seeds(rows, V, 30, KEY).tolist() == by_the_rule(rows, 30)


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_same_seeds_at_any_number_of_threads(rows, threads):
    assert np.array_equal(kmeans.seeds(rows, V, 30, KEY), kmeans.seeds(rows, V, 30, KEY, threads))
