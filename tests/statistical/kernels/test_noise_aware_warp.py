"""How far the stationary distribution of noise-aware `warp`, an approximation, is from the exact posterior.

The bars are those of `warp` without noise; 0.072 had been seen when they were set. The chain runs in a compiled loop; a
test of its own ties it to `aware.run`. A sampler that takes every report for true must fail.
"""

import numpy as np

from helpers.exact import total_variation
from statistical.kernels.test_noise_aware_exact import (
    ALPHA,
    BETA,
    DOCUMENTS,
    OPTIONS,
    REPORTS,
    WORDS,
    V,
    posterior,
    start,
)
from statistical.kernels.test_warp_exact import scales
from tertulia.kernels import noise_aware
from tertulia.kernels.core.guide_table import guide_table
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.lda.word_columns import columns
from tertulia.kernels.noise_aware import warp

BAR = 0.1
SWEEPS = 400_000
R = REPORTS["krr"]


@kernel
def chain(documents, reported, starts, places, packed, signal, ck, a, r0, lanes, upto, guide, beta, key, sweeps, seen):
    V, K, D = beta.shape[0], ck.shape[0], documents.shape[0] - 1
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        keys = [bits(stream, np.uint64(label)) for label in range(5)]
        inverse, without = scales(ck, beta.sum())
        ck[:] = 0
        warp.word_block(0, V, starts, packed, signal, a, r0, beta, keys[0], keys[1], keys[2], inverse, without, ck)
        inverse, without = scales(ck, beta.sum())
        ck[:] = 0
        warp.document_block(
            0, D, documents, places, packed, documents[D], lanes, upto, guide, keys[3], keys[4], inverse, without, ck
        )
        at = 0
        for i in range(places.shape[0] - 1, -1, -1):
            z = np.int64(packed[places[i]] >> np.uint32(16))
            at = at * (1 + K * V) + (1 + z * V + reported[i] if signal[places[i]] else 0)
        seen[at] += 1


def follow(sweeps, key, r0=R.r0):
    by_word, state = columns(R.idx, V), start(R)
    packed, signal = warp.begin(by_word, DOCUMENTS, state.z, ALPHA, derive(key, 0))
    seen = np.zeros(OPTIONS ** len(WORDS), dtype=np.int64)
    chain(
        DOCUMENTS, R.idx, *by_word, packed, signal, state.ck.copy(), float(R.a[0]), r0, freeze(ALPHA, np.float32),
        *guide_table(ALPHA), np.full(V, BETA), derive(key), sweeps, seen,
    )  # fmt: skip
    heard = signal[by_word.places] == 1
    return np.where(heard, (packed[by_word.places] >> 16).astype(np.int32), -1), seen


def test_it_is_near_the_posterior():
    assert 0.02 < total_variation(follow(SWEEPS, key=3)[1], posterior(R)) < BAR


def test_believing_reports_is_caught():
    assert total_variation(follow(SWEEPS // 4, key=4, r0=1e-9)[1], posterior(R)) > 2 * BAR


def test_the_chain_is_the_front_door():
    for sweeps in (1, 2, 3, 10, 25):
        state, _ = noise_aware.run(R, DOCUMENTS, start(R), sweeps, 14, "warp", Learning(every=100))
        assert np.array_equal(state.z, follow(sweeps, 14)[0])
