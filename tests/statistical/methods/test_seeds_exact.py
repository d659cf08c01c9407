"""The prior of seed words as counts of others: against the exact posterior of a tiny corpus, by enumeration.

The posterior is computed from its Dirichlet-multinomials, one for each topic with a prior of its own for each word.
"""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chisquare

from helpers.blocked_law import outcomes
from helpers.exact import total_variation
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked, gibbs
from tertulia.kernels.lda.counts import counts
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.seeds import Prior

WORDS, DOCUMENTS = freeze([0, 1, 1, 2, 0, 2, 2], np.int32), freeze([0, 3, 7], np.int64)
V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
SEEDS = Training(topics=K, seeds={"first": ["two"]}, seed_strength=2)
PRIOR = Prior.of(SEEDS, ("zero", "one", "two"))
SWEEPS, DRAWS = 120_000, 8_000


def digits(code):
    return np.array([code // K**i % K for i in range(len(WORDS))], dtype=np.int32)


def log_dirichlet_multinomial(n, prior):
    return gammaln(prior.sum()) - gammaln(prior.sum() + n.sum()) + (gammaln(prior + n) - gammaln(prior)).sum()


def posterior(beta):
    """The probability of every assignment [K^N] under priors beta [K, V] of words."""
    logs = []
    for code in range(K ** len(WORDS)):
        z, total = digits(code), 0.0
        for start, stop in itertools.pairwise(DOCUMENTS):
            total += log_dirichlet_multinomial(np.bincount(z[start:stop], minlength=K), ALPHA)
        for k in range(K):
            total += log_dirichlet_multinomial(np.bincount(WORDS[z == k], minlength=V), beta[k])
        logs.append(total)
    p = np.exp(np.array(logs) - max(logs))
    return p / p.sum()


SEEDED = posterior(BETA + PRIOR.counts(K))


def test_collapsed_gibbs_beside_the_prior_draws_from_the_posterior():
    z, seen = digits(37), np.zeros(K ** len(WORDS))
    cwk = counts(WORDS, z, V, K) + PRIOR.beside(K)
    ck, places = cwk.sum(axis=0, dtype=np.int64), K ** np.arange(len(WORDS))
    for s in range(SWEEPS):
        gibbs.sweep(WORDS, DOCUMENTS, z, cwk, ck, ALPHA, BETA, derive(7, s))
        seen[z @ places] += 1
    assert total_variation(seen, SEEDED) < 0.03
    assert total_variation(seen, posterior(np.full((K, V), BETA))) > 0.2  # seeds are felt


@pytest.mark.parametrize("code", [0, 37, 100])
def test_a_sweep_of_blocks_has_the_law_that_it_has_beside_others(code):
    before, seen = digits(code), np.zeros(K ** len(WORDS))
    for draw in range(DRAWS):
        z = before.copy()
        counted = blocked.count(WORDS, z, V, K, others=PRIOR.beside(K))
        blocked.sweep(WORDS, DOCUMENTS, z, counted, ALPHA, BETA, derive(code, draw))
        seen[z @ K ** np.arange(len(WORDS))] += 1
    p = outcomes(WORDS, DOCUMENTS, before, V, ALPHA, BETA, others=PRIOR.beside(K)) * DRAWS
    rare = p < 5
    seen, p = np.append(seen[~rare], seen[rare].sum()), np.append(p[~rare], p[rare].sum())
    assert chisquare(seen, p).pvalue > 1e-3


def test_blocks_are_about_as_near_to_the_posterior_as_without_seeds():
    law = [outcomes(WORDS, DOCUMENTS, digits(code), V, ALPHA, BETA, others=PRIOR.beside(K)) for code in range(K**7)]
    values, vectors = np.linalg.eig(np.array(law).T)
    limit = np.abs(vectors[:, np.argmax(values.real)].real)
    assert total_variation(limit, SEEDED) < 0.13  # 0.124 without, see test_blocked_exact
