"""What matters of an approximation: topics found by `sparse` (at the mean of phi) and `warp` predict as well as Gibbs'.

Bar, fixed before the first run: from the true topics on, held-out perplexities stay within 2 % of collapsed Gibbs'.
"""

import numpy as np
import pytest

from tertulia.kernels import lda
from tertulia.kernels.core.jit import frozen
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import fold_in, sparse, warp
from tertulia.kernels.lda.by_word import columns
from tertulia.kernels.lda.sparse_phi import mean_rows

D, LENGTH, V, K, ALPHA, BETA, SWEEPS = 2_000, 80, 1_000, 20, 0.1, 0.05, 150
DOCUMENTS = frozen(np.arange(0, D * LENGTH + 1, LENGTH), np.int64)


def planted(seed):
    """Words of training documents, words [200, LENGTH] of held-out ones, and the topics [K, V] that made them."""
    generator = np.random.default_rng(seed)
    topics = generator.dirichlet(np.full(V, 0.05), size=K)
    theta = generator.dirichlet(np.full(K, ALPHA), size=D + 200)
    z = (theta.cumsum(axis=1)[:, None] < generator.random((D + 200, LENGTH, 1))).sum(axis=2).clip(max=K - 1)
    u = generator.random(z.shape)
    words = np.empty(z.shape, dtype=np.int32)
    for k in range(K):
        words[z == k] = np.searchsorted(topics[k].cumsum(), u[z == k]).clip(max=V - 1)
    return frozen(words[:D].ravel(), np.int32), words[D:], topics


def by_gibbs(words, z):
    state = lda.init(words, DOCUMENTS, V, K, ALPHA, BETA, key=0)._replace(z=z)
    return lda.run(words, DOCUMENTS, state, SWEEPS, 2, "gibbs")[0].z


def by_sparse(words, z):
    by_word, alpha = columns(words, V), np.full(K, ALPHA)
    for s in range(SWEEPS):
        sparse.sweep(words, DOCUMENTS, z, mean_rows(by_word, z, alpha, BETA, threads=2), derive(2, s), threads=2)
    return z


def by_warp(words, z):
    by_word, ck = columns(words, V), np.bincount(z, minlength=K)
    packed = warp.pack(by_word.places, z)
    for s in range(SWEEPS):
        ck, _ = warp.sweep(DOCUMENTS, by_word, packed, ck, np.full(K, ALPHA), BETA, derive(2, s), threads=2)
    return warp.unpack(by_word.places, packed)


def perplexity(words, z, heldout):
    """Of every second token of a held-out document given the others."""
    cwk = np.zeros((V, K))
    np.add.at(cwk, (words, z), 1)
    topics = ((cwk + BETA) / (cwk.sum(axis=0) + V * BETA)).T
    seen, scored = heldout[:, ::2], heldout[:, 1::2]
    offsets = np.arange(0, seen.size + 1, seen.shape[1])
    theta = fold_in.theta(seen.ravel(), offsets, topics, ALPHA, threads=2)
    return float(np.exp(-np.log(np.einsum("dk,kdi->di", theta, topics[:, scored])).mean()))


@pytest.mark.parametrize("seed", range(3))
def test_heldout_perplexity_is_that_of_gibbs(seed):
    words, heldout, topics = planted(seed)
    start = lda.init_from_topics(words, DOCUMENTS, topics, ALPHA, BETA, key=1).z
    gibbs = perplexity(words, by_gibbs(words, start.copy()), heldout)
    for sampler in (by_sparse, by_warp):
        assert perplexity(words, sampler(words, start.copy()), heldout) == pytest.approx(gibbs, rel=0.02)
