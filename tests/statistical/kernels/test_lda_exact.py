"""Collapsed and partially collapsed Gibbs against the exact posterior, by enumeration: total variation at most 0.02.

The chains run in compiled loops, millions of sweeps long; a test of its own ties them to `lda.run`, bit for bit.
A sampler that forgets to take a token out of its own counts must fail the same bar, and so must phi at its mean.
"""

import numpy as np
import pytest

from helpers.exact import topics_posterior, total_variation
from tertulia.kernels import lda
from tertulia.kernels.core.guide_table import guide_table
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive, uniform
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import gibbs, phi, sparse, sparse_phi

BAR = 0.02
WORDS, DOCUMENTS = freeze([0, 1, 1, 2, 0, 2, 2], np.int32), freeze([0, 3, 7], np.int64)
V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
SWEEPS, FEW = 1_000_000, 20_000
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
def sparse_chain(words, documents, z, cwk, width, alpha, floor, beta, key, sweeps, seen):
    """Sweeps of `samplers._sparse` with phi drawn; rows this short have no tables."""
    V, K = cwk.shape
    starts, tables = np.zeros(V + 1, dtype=np.int64), np.zeros(V + 1, dtype=np.int64)
    no_topics, no_mass, ones = np.empty(0, np.uint16), np.empty(0, np.float32), np.ones(K, np.float32)
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        phis = np.zeros((V, width), dtype=np.float32)
        totals = np.empty(K)
        phi.gamma_block(cwk, beta, bits(stream, np.uint64(1)), 0, V, phis, totals)
        for k in range(K):
            if cwk[:, k].sum() == 0:
                totals[k] = phi.empty_topic(beta, bits(stream, np.uint64(1)), k, K, phis)
            phis[:, k] *= np.float32(1.0 / totals[k])
        rows, topics = np.nonzero(phis[:, :K])
        starts[1:] = np.cumsum(np.bincount(rows, minlength=V))
        mass = np.empty(rows.shape[0], dtype=np.float32)
        for j in range(rows.shape[0]):
            mass[j] = phis[rows[j], topics[j]]
        upto, names = np.empty_like(mass), topics.astype(np.uint16)
        sparse_phi.fill(alpha, 0, V, starts, names, mass, upto, tables, no_topics, no_mass, ones)
        given = sparse_phi.Rows(
            starts, names, mass, upto, tables, no_topics, no_mass, ones, 0.0, floor, alpha, no_mass
        )  # fmt: skip
        sparse.sweep_block(words, documents, 0, documents.shape[0] - 1, z, given, bits(stream, np.uint64(0)))
        cwk[:] = 0
        for i in range(z.shape[0]):
            cwk[words[i], z[i]] += 1
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


def assignments():
    """All assignments of topics, in the order of their codes."""
    return np.arange(K ** len(WORDS))[:, None] // K ** np.arange(len(WORDS)) % K


def follow(chain, sweeps, key):
    """The state after the chain and how often it saw each assignment."""
    z, cwk, ck = START.z.copy(), START.cwk.copy(), START.ck.copy()
    seen = np.zeros(K ** len(WORDS), dtype=np.int64)
    if chain is sparse_chain:
        floor = guide_table(np.zeros(K))
        chain(WORDS, DOCUMENTS, z, cwk, padded_width(K), ALPHA, floor, BETA, derive(key), sweeps, seen)
    else:
        chain(WORDS, DOCUMENTS, z, cwk, ck, ALPHA, BETA, derive(key), sweeps, seen)
    return z, seen


@pytest.mark.parametrize("chain", [gibbs_chain, sparse_chain])
def test_samplers_have_the_exact_posterior(posterior, chain):
    assert total_variation(follow(chain, SWEEPS, key=11)[1], posterior) < BAR


def test_a_sampler_that_keeps_its_own_token_is_caught(posterior):
    assert total_variation(follow(forgetful_chain, SWEEPS // 5, key=12)[1], posterior) > BAR


@pytest.mark.parametrize(("chain", "sampler"), [(gibbs_chain, "gibbs"), (sparse_chain, "sparse")])
def test_the_chains_are_the_front_door(chain, sampler):
    for sweeps in range(1, 40):
        state, _ = lda.run(WORDS, DOCUMENTS, START, sweeps, 14, sampler, phi="draw")
        assert np.array_equal(follow(chain, sweeps, 14)[0], state.z)


@pytest.mark.parametrize("how", ["draw", "mean"])
def test_phi_at_its_mean_is_the_approximation_it_says_it_is(posterior, how):
    """By how many tokens are in topic 0, for few sweeps would not do to see all assignments."""
    in_first = np.array([np.count_nonzero(z == 0) for z in assignments()])
    state, seen = START, np.zeros(len(WORDS) + 1)
    for t in range(FEW):
        state, _ = lda.run(WORDS, DOCUMENTS, state, 1, t, "sparse", phi=how)
        seen[np.count_nonzero(state.z == 0)] += 1
    distance = total_variation(seen, np.bincount(in_first, posterior))
    assert distance < BAR if how == "draw" else distance > BAR
