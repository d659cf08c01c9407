"""Both samplers against the exact posterior of the topics, by enumeration: total variation at most 0.02.

The chains run in compiled loops, millions of sweeps long; a test of its own ties them to `lda.run`, bit for bit.
A sampler that forgets to take a token out of its own counts must fail the same bar, and so must the approximation.
"""

import numpy as np
import pytest

from helpers.exact import topics_posterior, total_variation
from tertulia.kernels import lda
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import dense, gibbs, phi

BAR = 0.02
WORDS, DOCUMENTS = freeze([0, 1, 1, 2, 0, 2, 2], np.int32), freeze([0, 3, 7], np.int64)
V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
SWEEPS = 1_000_000
START = lda.init(WORDS, DOCUMENTS, V, K, ALPHA, BETA, key=1)


@pytest.fixture(scope="module")
def posterior():
    return topics_posterior(WORDS, DOCUMENTS, START)


@kernel
def code(z, K):
    total = 0
    for i in range(z.shape[0] - 1, -1, -1):
        total = total * K + z[i]
    return total


@kernel
def gibbs_chain(words, documents, z, cwk, ck, alpha, beta, key, sweeps, seen):
    for s in range(sweeps):
        gibbs.sweep(words, documents, z, cwk, ck, alpha, beta, bits(bits(key, np.uint64(s)), np.uint64(0)))
        seen[code(z, ck.shape[0])] += 1


@kernel
def dense_chain(words, documents, z, cwk, lanes, beta, key, sweeps, draw, seen):
    V, K = cwk.shape
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        phis = np.zeros((V, lanes.shape[0]), dtype=np.float32)
        totals = np.empty(K)
        ck = cwk.sum(axis=0)
        shared = ck[: 0 if draw else K] + V * beta
        if draw:
            phi.gamma_block(cwk, beta, bits(stream, np.uint64(1)), 0, V, phis, totals)
            for k in range(K):
                if ck[k] == 0:
                    totals[k] = phi.empty_topic(beta, bits(stream, np.uint64(1)), k, K, phis)
        else:
            phis[:, :K] = cwk + beta
            totals[:] = ck + V * beta
        for k in range(K):
            phis[:, k] *= np.float32(1.0 / totals[k])
        sweep_key = bits(stream, np.uint64(0))
        dense.sweep_block(
            words, documents, 0, documents.shape[0] - 1, z, phis, shared, lanes, sweep_key, cwk.reshape(-1), ck, s % 2
        )
        seen[code(z, K)] += 1


@kernel
def forgetful_chain(words, documents, z, cwk, ck, alpha, beta, key, sweeps, seen):
    """Collapsed Gibbs that leaves the token in the counts it is drawn from."""
    V, K = cwk.shape
    p = np.empty(K)
    for s in range(sweeps):
        for d in range(documents.shape[0] - 1):
            for i in range(documents[d], documents[d + 1]):
                for k in range(K):
                    cdk = (z[documents[d] : documents[d + 1]] == k).sum()
                    p[k] = (cdk + alpha[k]) * (cwk[words[i], k] + beta) / (ck[k] + V * beta)
                new = np.searchsorted(np.cumsum(p), p.sum() * uniform(bits(key, np.uint64(s)), np.uint64(i)))
                cwk[words[i], z[i]] -= 1
                ck[z[i]] -= 1
                z[i] = min(new, K - 1)
                cwk[words[i], z[i]] += 1
                ck[z[i]] += 1
        seen[code(z, K)] += 1


def follow(chain, sweeps, key, draw=True):
    """The state after the chain and how often it saw each assignment."""
    z, cwk, ck = START.z.copy(), START.cwk.copy(), START.ck.copy()
    seen = np.zeros(K ** len(WORDS), dtype=np.int64)
    if chain is dense_chain:
        lanes = np.zeros(padded_width(K), dtype=np.float32)
        lanes[:K] = ALPHA
        chain(WORDS, DOCUMENTS, z, cwk, freeze(lanes, np.float32), BETA, derive(key), sweeps, draw, seen)
    else:
        chain(WORDS, DOCUMENTS, z, cwk, ck, ALPHA, BETA, derive(key), sweeps, seen)
    return z, seen


@pytest.mark.parametrize("chain", [gibbs_chain, dense_chain])
def test_samplers_have_the_exact_posterior(posterior, chain):
    assert total_variation(follow(chain, SWEEPS, key=11)[1], posterior) < BAR


def test_a_sampler_that_keeps_its_own_token_is_caught(posterior):
    assert total_variation(follow(forgetful_chain, SWEEPS // 5, key=12)[1], posterior) > BAR


def test_phi_at_its_mean_is_the_approximation_it_says_it_is(posterior):
    assert total_variation(follow(dense_chain, SWEEPS // 5, key=13, draw=False)[1], posterior) > BAR


@pytest.mark.parametrize(("chain", "sampler"), [(gibbs_chain, "gibbs"), (dense_chain, "dense")])
@pytest.mark.parametrize("draw", [True, False])
def test_the_chains_are_the_front_door(chain, sampler, draw):
    for sweeps in range(1, 40):
        state, _ = lda.run(WORDS, DOCUMENTS, START, sweeps, 14, sampler, phi="draw" if draw else "mean")
        assert np.array_equal(follow(chain, sweeps, 14, draw)[0], state.z)
