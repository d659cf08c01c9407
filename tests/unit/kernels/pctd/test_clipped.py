"""PC-TD's clipped statistic: its definition, and that no document moves it further than the clip norm."""

from itertools import pairwise

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.pctd import em
from tertulia.kernels.pctd.clipped import clipped_statistics

V, K, BITS, CLIP = 9, 3, 14, 1.5


def units_of(lengths, seed):
    """Documents of random words, in units of three words and shorter ones."""
    rng = np.random.default_rng(seed)
    documents = np.concatenate(([0], np.cumsum(lengths)))
    bounds = [(i, min(i + 3, b)) for a, b in pairwise(documents) for i in range(a, b, 3)]
    words = (rng.integers(0, V, documents[-1]) * (rng.random(documents[-1]) < 0.8)).astype(np.int32)
    return em.semantic_units(words, documents, np.array(bounds).reshape(-1, 2), V)


def shares_of(found, seed=1):
    rng = np.random.default_rng(seed)
    log_phi, theta = np.log(rng.dirichlet(np.full(V, 0.3), K).T + 1e-9), rng.dirichlet(np.ones(K), found.shape[0])
    return em.responsibilities(found, log_phi, theta)[0]


def without(found, r, d):
    """The same units without those of a document."""
    a, b = found.documents[d], found.documents[d + 1]
    rest = np.concatenate((found.documents[: d + 1], found.documents[d + 2 :] - (b - a)))
    return em.SemanticUnits(found.words, np.delete(found.bounds, slice(a, b), 0), rest), np.delete(r, slice(a, b), 0)


LENGTHS = [0, 1, 2, 7, 40, 0, 400, 5, 9, 3]


def test_the_statistic_is_its_definition():
    found = units_of(LENGTHS, 3)
    r = shares_of(found)
    expected = np.zeros((V, K), np.int64)
    for d in range(len(LENGTHS)):
        mine = np.zeros((V, K))
        for u in range(found.documents[d], found.documents[d + 1]):
            for w in found.words[slice(*found.bounds[u])]:
                mine[w] += r[u]
        norm = np.sqrt((mine**2).sum())
        if norm:
            expected += np.trunc(mine * (min(1.0, CLIP / norm) * 2**BITS)).astype(np.int64)
    summed = clipped_statistics(found, r, V, CLIP, BITS)
    assert summed.dtype == np.int64
    assert np.abs(summed - expected).max() <= len(LENGTHS)  # a step of the grid, where rounding decides
    unclipped = clipped_statistics(found, r, V, 1e6, BITS) / 2**BITS
    assert np.allclose(unclipped, em.statistics(found, r, V), atol=len(LENGTHS) * 2**-BITS)


def test_no_document_moves_the_sum_further_than_the_clip_norm():
    clipped, limit = 0, int(CLIP * 2**BITS) ** 2
    for seed in range(4):
        found = units_of(LENGTHS, seed)
        r = shares_of(found, seed)
        whole = clipped_statistics(found, r, V, CLIP, BITS)
        for d in range(len(LENGTHS)):
            moved = whole - clipped_statistics(*without(found, r, d), V, CLIP, BITS)
            square = sum(int(x) ** 2 for x in moved.ravel())  # exact
            assert square <= limit
            clipped += square > 0.99 * limit
    assert clipped >= 8  # the bound is reached: clipping took place


def test_a_document_adds_the_same_whatever_the_others_are():
    one = units_of([40], 5)
    r = shares_of(one)
    alone = clipped_statistics(one, r, V, CLIP, BITS)
    for seed in range(3):
        others = units_of([200, 1, 33], seed)
        q = shares_of(others, seed)
        words = np.concatenate((others.words, one.words))
        documents = np.append(others.documents, len(q) + len(r))
        both = em.SemanticUnits(words, np.concatenate((others.bounds, one.bounds + len(others.words))), documents)
        whole = clipped_statistics(both, np.concatenate((q, r)), V, CLIP, BITS)
        assert np.array_equal(whole - clipped_statistics(others, q, V, CLIP, BITS), alone)
    assert np.array_equal(clipped_statistics(units_of([0, 0], 0), np.zeros((0, K)), V, CLIP, BITS), np.zeros((V, K)))


def test_responsibilities_and_clip_must_fit():
    found = units_of([4], 0)
    with pytest.raises(InputError, match="a row for each of 2 units"):
        clipped_statistics(found, np.ones((3, K)), V, CLIP, BITS)
    for clip in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="must be positive"):
            clipped_statistics(found, shares_of(found), V, clip, BITS)
