"""The sparse sampler against the exact posterior of the topics, by enumeration: total variation at most 0.02.

Given phi, documents are independent. So copies of one document, swept a few times, are as many draws from its
posterior: both for a phi that is given whole and for one that is the mean of counts, with long, short and empty
rows. A sampler that is not handed the right prior must fail the same bar.
"""

import itertools
import math

import numpy as np
import pytest

from helpers.exact import total_variation
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import sparse
from tertulia.kernels.lda.sparse_phi import mean_rows, phi_rows
from tertulia.kernels.lda.word_columns import columns

BAR = 0.02
TOKENS, SWEEPS = 1_000_000, 8  # draws from the posterior itself are off by 0.014
BETA, V = 0.3, 4
CASES = {"long rows, few topics held": (24, [0, 1]), "an empty row": (24, [3, 0]), "many tokens": (3, [0, 1, 1, 2, 3])}


def counted(K):
    """Words and topics [n] whose counts are the model: word 0 is in all topics, 1 in some, 2 in one, 3 in none."""
    generator = np.random.default_rng(K)
    words = np.repeat(np.array([0, 1, 2], dtype=np.int32), [20 * K, 2 * K, 2])
    z = generator.integers(0, K, size=len(words)).astype(np.int32)
    z[:K], z[words == 1], z[words == 2] = np.arange(K), z[words == 1] % (1 + K // 2), K - 1
    return words, z


def model(K, kind, alpha):
    words, z = counted(K)
    cwk = np.zeros((V, K))
    np.add.at(cwk, (words, z), 1)
    phi = (cwk + BETA) / (cwk.sum(axis=0) + V * BETA)
    if kind == "mean":
        rows = mean_rows(columns(words, V), z, alpha, BETA, threads=1)
        return phi, rows._replace(without=rows.without[:0])  # the documents to be swept are not among the counts
    phi[0, ::3] = 0.0  # a draw holds zeros
    lanes = np.zeros((V, padded_width(K)), dtype=np.float32)
    lanes[:, :K] = phi
    return phi, phi_rows(lanes, alpha, threads=1)


def posterior(document, phi, alpha):
    """The probability of every assignment of a document's tokens: [K^n], token i is digit i."""
    p = []
    for z in itertools.product(range(len(alpha)), repeat=len(document)):
        before = [z[:i].count(k) + alpha[k] for i, k in enumerate(z)]
        p.append(math.prod(before) * math.prod(phi[document, z]))
    return np.array(p) / sum(p)


def sampled(document, rows, K):
    n = len(document)
    copies = TOKENS // n
    words, documents = freeze(document * copies, np.int32), freeze(np.arange(0, copies * n + 1, n), np.int64)
    z = np.random.default_rng(1).integers(0, K, size=len(words)).astype(np.int32)
    for s in range(SWEEPS):
        sparse.sweep(words, documents, z, rows, derive(5, s), threads=2)
    codes = z.reshape(copies, n) @ K ** np.arange(n)[::-1]
    return np.bincount(codes, minlength=K**n)


def distance(case, kind, sampler_alpha=1.0):
    K, document = CASES[case]
    alpha = np.linspace(0.5, 1.5, K) * 2.0 / K
    phi, _ = model(K, kind, alpha)
    _, rows = model(K, kind, alpha * sampler_alpha)
    return total_variation(sampled(document, rows, K), posterior(document, phi, alpha))


@pytest.mark.parametrize("kind", ["mean", "given"])
@pytest.mark.parametrize("case", CASES)
def test_draws_have_the_exact_posterior_given_phi(case, kind):
    assert distance(case, kind) < BAR


def test_another_prior_is_caught():
    assert distance("many tokens", "mean", sampler_alpha=1.3) > BAR
