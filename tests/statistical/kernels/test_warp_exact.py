"""How far the stationary distribution of `warp`, an approximation, is from the exact posterior, by enumeration.

Bars, fixed when 0.074 had been seen once: total variation below 0.1, and above the 0.02 of the exact samplers, so that
nobody takes it for one of them. The chain runs in a compiled loop; a test of its own ties it to `warp.sweep`.
"""

import numpy as np

from helpers.exact import topics_posterior, total_variation
from tertulia.kernels import lda
from tertulia.kernels.core.guide_table import guide_table
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive
from tertulia.kernels.lda import warp
from tertulia.kernels.lda.word_columns import columns

WORDS, DOCUMENTS = freeze([0, 1, 1, 2, 0, 2, 2], np.int32), freeze([0, 3, 7], np.int64)
V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
SWEEPS = 1_000_000


@kernel
def code(places, packed, K):
    total = 0
    for i in range(places.shape[0] - 1, -1, -1):
        total = total * K + np.int64(packed[places[i]] >> np.uint32(16))
    return total


@kernel
def scales(ck, smoothing):
    inverse, without = np.empty(ck.shape[0], dtype=np.float32), np.empty(ck.shape[0], dtype=np.float32)
    for k in range(ck.shape[0]):
        inverse[k] = np.float32(1.0 / (ck[k] + smoothing))
        without[k] = np.float32(1.0 / (max(ck[k] - 1, 0) + smoothing))
    return inverse, without


@kernel
def chain(documents, starts, places, packed, ck, lanes, upto, guide, beta, key, sweeps, seen):
    V, D = starts.shape[0] - 1, documents.shape[0] - 1
    longest = documents[D]
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        keys = [bits(stream, np.uint64(label)) for label in range(4)]
        inverse, without = scales(ck, V * beta)
        ck[:] = 0
        warp.word_block(0, V, starts, packed, beta, keys[0], keys[1], inverse, without, ck)
        inverse, without = scales(ck, V * beta)
        ck[:] = 0
        warp.document_block(
            0, D, documents, places, packed, longest, lanes, upto, guide, keys[2], keys[3], inverse, without, ck
        )
        seen[code(places, packed, ck.shape[0])] += 1


def follow(words, documents, sweeps, key):
    by_word = columns(words, V)
    z = lda.init(words, documents, V, K, ALPHA, BETA, key=1).z
    packed, ck = warp.pack(by_word.places, z), np.bincount(z, minlength=K)
    seen = np.zeros(K ** len(words), dtype=np.int64)
    lanes = freeze(ALPHA, np.float32)
    chain(documents, *by_word, packed, ck, lanes, *guide_table(ALPHA), BETA, derive(key), sweeps, seen)
    return warp.unpack(by_word.places, packed), seen


def test_it_is_near_the_posterior_and_not_exact():
    _, seen = follow(WORDS, DOCUMENTS, SWEEPS, key=3)
    state = lda.init(WORDS, DOCUMENTS, V, K, ALPHA, BETA, key=1)
    assert 0.02 < total_variation(seen, topics_posterior(WORDS, DOCUMENTS, state)) < 0.1


def test_the_chain_is_the_front_door():
    by_word = columns(WORDS, V)
    z = lda.init(WORDS, DOCUMENTS, V, K, ALPHA, BETA, key=1).z
    packed, ck = warp.pack(by_word.places, z), np.bincount(z, minlength=K)
    for s in range(40):
        ck, _ = warp.sweep(DOCUMENTS, by_word, packed, ck, ALPHA, BETA, derive(14, s), threads=1)
        assert np.array_equal(warp.unpack(by_word.places, packed), follow(WORDS, DOCUMENTS, s + 1, 14)[0])
