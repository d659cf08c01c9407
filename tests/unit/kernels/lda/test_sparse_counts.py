"""The mass of topics in words: what is kept of common and of rare words, and batches, against literal versions."""

import numpy as np
import pytest

from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.simd import inverse_counts, pad_with_zeros
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda.online_em import sparse_counts as masses
from tertulia.kernels.lda.online_em import sparse_step
from tertulia.kernels.lda.online_em.batch import batch_at, collect, course, room
from tertulia.kernels.lda.online_em.sparse_counts import FEW

V, K, COMMON = 60, 40, 20


@pytest.fixture
def tokens():
    return np.sort(np.random.default_rng(1).integers(1, 50, size=V))[::-1].copy()


@pytest.fixture
def sown(tokens, monkeypatch):
    monkeypatch.setattr(masses, "_CELLS", COMMON * padded_width(K))
    return masses.initial_mass(tokens, K, derive(7))


def full(mass):
    """The mass as a matrix [V, K]."""
    matrix = np.zeros((V, K))
    matrix[:COMMON] = mass.cells[:, :K]
    np.put_along_axis(matrix[COMMON:], mass.topics.astype(np.int64), mass.slots, axis=1)
    return matrix


def some_batch(documents=30, length=12, seed=2):
    generator = np.random.default_rng(seed)
    words = freeze(generator.integers(0, V, size=documents * length), np.int32)
    offsets = freeze(np.arange(0, documents * length + 1, length), np.int64)
    places = room(offsets, course(offsets), V, 1)
    collect(words, offsets, 0, documents, freeze(np.arange(V), np.int32), places, 0)
    return words, offsets, batch_at(places, 0)


def test_the_initial_mass_keeps_every_token(sown, tokens):
    mass, sums = sown
    assert len(mass.cells) == COMMON
    assert np.allclose(full(mass).sum(axis=1), tokens, rtol=1e-5)
    assert np.allclose(full(mass).sum(axis=0), sums[:K], rtol=1e-5)
    assert (np.count_nonzero(full(mass), axis=1) == [8] * COMMON + [FEW] * (V - COMMON)).all()


def test_a_batch_holds_its_documents_by_document_and_by_word():
    words, offsets, batch = some_batch()
    held = batch.offsets[-1]
    for d in range(len(batch.offsets) - 1):
        mine = slice(batch.offsets[d], batch.offsets[d + 1])
        known, counts = np.unique(words[offsets[d] : offsets[d + 1]], return_counts=True)
        order = np.argsort(batch.words[mine])
        assert np.array_equal(batch.words[mine][order], known)
        assert np.array_equal(batch.counts[mine][order], counts)
        assert (batch.owner[mine] == d).all()
    assert np.array_equal(np.sort(batch.order), np.arange(held))
    for first, last in zip(batch.columns, batch.columns[1:], strict=False):
        column = batch.order[first:last]
        assert len(set(batch.words[column])) == 1
        assert (np.diff(column) > 0).all()
    assert len(batch.columns) - 1 == len(set(batch.words))


def test_the_topics_of_a_document_are_those_of_most_value(sown):
    mass, sums = sown
    inverse = inverse_counts(sums, 1.0, K)
    words, counts = np.array([3, 25, 59], dtype=np.int32), np.array([1, 2, 5], dtype=np.float32)
    mine, value = np.empty(FEW, dtype=np.int32), np.empty(FEW, dtype=np.float32)
    n = masses.choose(words, counts, 0, 3, mass, inverse, masses.scratch(padded_width(K)), mine, value)
    expected = (full(mass)[words] * (counts / mass.whole[words])[:, None]).sum(axis=0) * inverse[:K]
    assert n == FEW
    assert np.allclose(np.sort(value), np.sort(expected)[-FEW:], rtol=1e-5)
    assert np.allclose(value, expected[mine], rtol=1e-5)
    rows = np.empty((3, FEW), dtype=np.float32)
    masses.gather(words, 0, 3, mass, np.float32(0.5), inverse, masses.scratch(padded_width(K)), mine, rows, 0)
    assert np.allclose(rows, (full(mass)[words][:, mine] + 0.5) * inverse[mine], rtol=1e-5)


def test_a_document_may_have_fewer_topics(sown):
    mass, sums = sown
    mine, value = np.empty(FEW, dtype=np.int32), np.empty(FEW, dtype=np.float32)
    work, one = masses.scratch(padded_width(K)), np.ones(1, dtype=np.float32)
    inverse = inverse_counts(sums, 1.0, K)
    n = masses.choose(np.array([2], dtype=np.int32), one, 0, 1, mass, inverse, work, mine, value)
    assert (n, set(mine[:8]), set(mine[8:])) == (8, set(mass.listed[2]), {-1})
    rows = np.full((1, FEW), np.nan, dtype=np.float32)
    masses.gather(np.array([30], dtype=np.int32), 0, 1, mass, np.float32(0.5), inverse, work, mine, rows, 0)
    assert np.allclose(rows[0, :8], (full(mass)[30, mine[:8]] + 0.5) * inverse[mine[:8]], rtol=1e-5)
    assert not rows[0, 8:].any()


def test_a_step_keeps_all_sums_and_lists_the_strongest(sown):
    """Slots are taken over on the way; a list holds what is strongest, up to topics that were never a pair's best."""
    mass, sums = sown
    prior, total = pad_with_zeros(np.full(K, 0.1)), sums.copy()
    for seed in range(20):
        before = full(mass)
        _, _, batch = some_batch(seed=seed)
        inverse = inverse_counts(total, 0.1 * V, K)
        chosen, shares = work = sparse_step.room(30, len(batch.words))
        sparse_step.expect(batch, 0, 30, mass, np.float32(0.1), inverse, prior, work)
        assert np.allclose(shares.sum(axis=1), batch.counts, rtol=1e-4)  # every token goes somewhere
        gained = np.zeros(padded_width(K), dtype=np.float32)
        for first, last in ((0, 5), (5, len(batch.columns) - 1)):
            sparse_step.maximise(batch, first, last, mass, np.float32(0.1), np.float32(2.0), work, gained)
        after = full(mass)
        assert np.allclose(after.sum(axis=1), mass.whole, rtol=1e-4)
        assert np.allclose((after - before).sum(axis=0), gained[:K], rtol=1e-3, atol=1e-2)
        total += gained
        expected = before.copy()
        np.add.at(expected, (batch.words[:, None], chosen[batch.owner]), 2.0 * shares)
        assert np.allclose(after[:COMMON], expected[:COMMON], rtol=1e-4)
        assert (after[COMMON:] <= expected[COMMON:] * (1 + 1e-4) + 1e-4).all()
        best = np.sort(after[:COMMON], axis=1)[:, -8:].sum(axis=1)
        listed = np.take_along_axis(after[:COMMON], mass.listed.astype(np.int64), axis=1).sum(axis=1)
        assert (listed > 0.8 * best).all()
