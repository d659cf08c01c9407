"""Noise-aware SentenceLDA against the exact posterior, by enumeration, and Geweke's joint distribution test.

The chain runs in a compiled loop; a test of its own ties it to `aware_sentence.run`, bit for bit. A sampler that takes
the reported words for true must fail both.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln

from helpers.exact import total_variation
from helpers.geweke import BAR, draw, reported_words, worst_score
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive
from tertulia.kernels.core.vectors import LANES
from tertulia.kernels.lda import phi
from tertulia.kernels.noise_aware import AwareState, sentence
from tertulia.kernels.reports import Channel, reports

V, K, ALPHA, BETA = 3, 2, np.array([0.3, 0.7]), 0.4
WORDS = np.array([0, 1, 2, 2, 0], dtype=np.int32)
TOKENS, DOCUMENTS = freeze([0, 2, 3, 5], np.int64), freeze([0, 3, 5], np.int64)  # three sentences, two documents
OF_DOCUMENTS = freeze([0, 2, 3], np.int64)
REPORTS = {
    name: reports(WORDS, channel, bytes(range(32)), "tiny")
    for name, channel in {
        "laplace": Channel("laplace", 1.5, V, tau=0.1),
        "krr": Channel("krr", 1.2, V),
        "subset": Channel("subset", 0.2, V),
    }.items()
}
SWEEPS, FAR = 300_000, 0.02
OPTIONS = 1 + V  # what a token is taken for: background, or a word


def posterior(r):
    """The probability of every state, topics of sentences first, then what tokens are taken for."""
    choices = [[(-1, r.r0), *zip(r.idx[a:b], r.a[a:b], strict=True)] for a, b in itertools.pairwise(r.indptr)]
    p = np.zeros(K ** (len(TOKENS) - 1) * OPTIONS ** len(WORDS))
    for z in itertools.product(range(K), repeat=len(TOKENS) - 1):
        cdk = np.stack([np.bincount(z[a:b], minlength=K) for a, b in itertools.pairwise(OF_DOCUMENTS)])
        prior = gammaln(cdk + ALPHA).sum() - gammaln(cdk.sum(axis=1) + ALPHA.sum()).sum()
        of_tokens = np.repeat(z, np.diff(TOKENS))
        for taken in itertools.product(*choices):
            words = np.array([w for w, _ in taken])
            cwk = np.zeros((V, K))
            np.add.at(cwk, (words[words >= 0], of_tokens[words >= 0]), 1)
            likely = gammaln(cwk + BETA).sum() - gammaln(cwk.sum(axis=0) + V * BETA).sum()
            p[place(z, words)] = math.exp(prior + likely) * math.prod(weight for _, weight in taken)
    return p / p.sum()


@kernel
def place(z, words):
    at = 0
    for s in range(len(z)):
        at = at * 2 + z[s]
    for i in range(len(words)):
        at = at * 4 + words[i] + 1
    return at


@kernel
def chain(indptr, idx, a, r0, tokens, documents, z, word, cwk, alpha, beta, key, sweeps, seen):
    V, K = cwk.shape
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        phis, totals, ck = np.zeros((V, LANES), dtype=np.float32), np.empty(K), cwk.sum(axis=0)
        phi.gamma_block(cwk, beta, bits(stream, np.uint64(1)), 0, V, phis, totals)
        for k in range(K):
            if ck[k] == 0:
                totals[k] = phi.empty_topic(beta, bits(stream, np.uint64(1)), k, K, phis)
            phis[:, k] *= np.float32(1.0 / totals[k])
        cwk[:] = 0
        sentence.sweep_given_phi(
            indptr, idx, a, r0, 0, tokens, documents, 0, len(documents) - 1, z, word, phis, np.empty(0), alpha, cwk,
            bits(stream, np.uint64(0)),
        )  # fmt: skip
        seen[place(z, word)] += 1


def follow(r, sweeps, key):
    z, word, cwk = (x.copy() for x in start(r)[:3])
    seen = np.zeros(K ** (len(TOKENS) - 1) * OPTIONS ** len(WORDS), dtype=np.int64)
    chain(*r[:3], r.r0, TOKENS, OF_DOCUMENTS, z, word, cwk, ALPHA, BETA, derive(key), sweeps, seen)
    return z, word, seen


def start(r):
    return sentence.init(r, TOKENS, DOCUMENTS, V, K, ALPHA, BETA, key=1)


@pytest.mark.parametrize("name", REPORTS)
def test_the_sampler_has_the_exact_posterior(name):
    r = REPORTS[name]
    p = posterior(r)
    seen = follow(r, SWEEPS, key=11)[2]
    assert total_variation(seen, p) < FAR


def test_a_sampler_that_believes_its_reports_is_caught():
    seen = follow(REPORTS["krr"]._replace(r0=1e-9), SWEEPS // 10, key=12)[2]
    assert total_variation(seen, posterior(REPORTS["krr"])) > 10 * FAR


@pytest.mark.parametrize("name", REPORTS)
def test_the_chain_is_the_front_door(name):
    r = REPORTS[name]
    for sweeps in (1, 2, 5, 20):
        state, _ = sentence.run(r, TOKENS, DOCUMENTS, start(r), sweeps, 14)
        z, word, _ = follow(r, sweeps, 14)
        assert np.array_equal(z, state.z)
        assert np.array_equal(word, state.word)


D, S, LENGTH = 3, 2, 2  # of Geweke's data sets: documents, their sentences, and the words of these
N = D * S * LENGTH
SENTENCES, ENDS = np.arange(0, N + 1, LENGTH), np.arange(0, N + 1, S * LENGTH)
STEPS, MANY = 2_000, 12_000  # worth 350 and 2000 independent ones
CHANNEL = Channel("laplace", 2.0, V)


def statistics(reported, z):
    """Of each of n data sets, reported words [n, N, V] and topics of sentences [n, D S]."""
    first = (z == 0).reshape(-1, D, S).sum(axis=2)
    of_tokens = z.repeat(LENGTH, axis=1)
    cells = np.stack([(reported[:, :, w] & (of_tokens == k)).sum(axis=1) for w in range(V) for k in range(K)], axis=1)
    alike = (reported[:, ::2] & reported[:, 1::2]).sum(axis=(1, 2))
    columns = [first.sum(axis=1), (first**2).sum(axis=1), first[:, 0] * first[:, 1], (cells**2).sum(axis=1)]
    columns += [cells[:, 0], cells[:, 0] * cells[:, 3], reported[:, :, 0].sum(axis=1) ** 2, alike]
    return np.column_stack(columns).astype(float)


def from_prior(n, generator):
    z = draw(generator.dirichlet(ALPHA, size=(n, D)).repeat(S, axis=1), generator)
    topics = generator.dirichlet(np.full(V, BETA), size=(n, K))
    words = draw(topics[np.arange(n)[:, None], z.repeat(LENGTH, axis=1)], generator)
    r = reports(words.ravel().astype(np.int32), CHANNEL, bytes(32), f"prior {n}")
    return reported_words(r, n * N, V)[0].reshape(n, N, V), z


def from_sampler(belief, steps, generator):
    z = from_prior(1, generator)[1][0].astype(np.int32)
    topics = generator.dirichlet(np.full(V, BETA), size=K)
    reported, kept = np.empty((steps, N, V), dtype=bool), np.empty((steps, D * S), dtype=np.int64)
    for t in range(steps):
        words = draw(topics[z.repeat(LENGTH)], generator).astype(np.int32)
        r = reports(words, CHANNEL, bytes(32), f"step {t}")
        reported[t], a = reported_words(r, N, V)
        taken = draw(np.column_stack([np.full(N, r.r0), a * topics[z.repeat(LENGTH)]]), generator) - 1
        empty = np.zeros((V, K), np.int32), np.zeros(K, np.int64)
        state = AwareState(z, taken.astype(np.int32), *empty, ALPHA, BETA)
        state, _ = sentence.run(r._replace(r0=r.r0 * belief), SENTENCES, ENDS, state, 1, t)
        z = kept[t] = state.z
        z = z.astype(np.int32)
        topics = np.stack([generator.dirichlet(c + BETA) for c in state.cwk.T])
    return reported, kept


def score(belief, steps):
    truth = statistics(*from_prior(50_000, np.random.default_rng(1)))
    return worst_score(truth, statistics(*from_sampler(belief, steps, np.random.default_rng(2))))


@pytest.mark.parametrize("steps", [STEPS, pytest.param(MANY, marks=pytest.mark.slow)])
def test_geweke(steps):
    assert score(1.0, steps) < BAR


@pytest.mark.slow
def test_geweke_catches_wrong_beliefs():
    assert score(0.02, MANY) > BAR
