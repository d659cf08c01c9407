"""The counts of `warp`, its packing, repeatability and memory."""

import numpy as np
import pytest

from helpers.planted import uneven
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import warp
from tertulia.kernels.lda.word_columns import columns

V, K, BETA = 60, 40, 0.1
ALPHA = np.linspace(0.05, 0.3, K)


@pytest.fixture(scope="module")
def corpus():
    return uneven(V, K)


def swept(corpus, sweeps, threads, V=V, alpha=ALPHA):
    words, documents, z = corpus
    by_word = columns(words, V)
    packed, ck, moves = warp.pack(by_word.places, z), np.bincount(z, minlength=len(alpha)), 0
    for s in range(sweeps):
        ck, moves = warp.sweep(documents, by_word, packed, ck, alpha, BETA, derive(3, s), threads)
    return warp.unpack(by_word.places, packed), ck, moves


def test_unpacking_undoes_packing(corpus):
    assert np.array_equal(swept(corpus, 0, threads=1)[0], corpus[2])


def test_counts_are_those_of_the_topics(corpus):
    z, ck, moves = swept(corpus, 5, threads=1)
    assert z.dtype == np.int32
    assert np.array_equal(ck, np.bincount(z, minlength=K))
    assert 0 < moves < 2 * len(z)


def test_a_sweep_gives_the_same_bits_at_any_number_of_threads(corpus):
    one = swept(corpus, 6, threads=1)
    for threads in (2, 5):
        assert all(np.array_equal(a, b) for a, b in zip(one, swept(corpus, 6, threads), strict=True))
    assert not np.array_equal(one[0], swept(corpus, 7, threads=1)[0])


def test_the_first_sweep_changes_topics_in_the_document_pass_only(corpus):
    """Packed topics are their own proposals: the words, which judge first, have nothing to judge."""
    words, _, z = corpus
    by_word = columns(words, V)
    packed, ck = warp.pack(by_word.places, z), np.zeros(K, dtype=np.int64)
    scale = np.full(K, 0.1, dtype=np.float32)
    moves = warp.word_block(0, V, by_word.starts, packed, BETA, derive(1), derive(2), scale, scale, ck)
    assert moves == 0
    assert np.array_equal(warp.unpack(by_word.places, packed), z)
    assert np.array_equal(ck, np.bincount(z, minlength=K))


def test_the_largest_topic_fits_into_two_bytes(corpus):
    words, documents, _ = corpus
    z = np.full(len(words), 65_535, dtype=np.int32)
    z[::2] = 0
    after, ck, _ = swept((words, documents, z), 3, threads=2, alpha=np.full(65_536, 1e-3))
    assert np.array_equal(ck, np.bincount(after, minlength=65_536))


def test_no_tokens_no_harm():
    nothing = freeze([], np.int32), freeze([0, 0], np.int64), np.empty(0, dtype=np.int32)
    z, ck, moves = swept(nothing, 2, threads=2)
    assert (len(z), ck.sum(), moves) == (0, 0, 0)
