"""Noise-aware samplers against the exact posterior of topics and words, by enumeration, under each channel.

The chains run in compiled loops; a test of its own ties them to `aware.run`, bit for bit. A sampler that takes the
reported words for true must fail the same bar.
"""

import itertools
import math

import numpy as np
import pytest

from helpers.exact import total_variation
from tertulia.kernels import noise_aware
from tertulia.kernels.core import alias
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.core.rng import bits, derive
from tertulia.kernels.core.vectors import LANES
from tertulia.kernels.lda import gibbs, phi
from tertulia.kernels.noise_aware import gibbs as aware_gibbs
from tertulia.kernels.noise_aware import mh
from tertulia.kernels.reports import Channel, Reports, reports

BAR = 0.02
V, K, ALPHA, BETA = 4, 2, np.array([0.3, 0.7]), 0.4
WORDS, DOCUMENTS = freeze([0, 1, 1, 2], np.int32), freeze([0, 3, 4], np.int64)
OPTIONS = 1 + K * V  # background, or a topic and a word
SWEEPS = 200_000
CHANNELS = {
    "laplace": Channel("laplace", 1.5, V, tau=0.1),
    "krr": Channel("krr", 1.2, V),
    "subset": Channel("subset", 0.5, V),
}
REPORTS = {name: reports(WORDS, channel, bytes(range(32)), "tiny") for name, channel in CHANNELS.items()}
REPORTS["two words"] = Reports(
    np.array([0, 2, 3, 5, 6]),
    np.array([0, 1, 1, 0, 2, 2], dtype=np.int32),
    np.array([3.0, 1.0, 2.0, 0.5, 4.0, 2.0], dtype=np.float32),
    np.ones(6, dtype=np.float32),
    0.7,
)


def posterior(r):
    """The probability of every state [OPTIONS^N]: sum over topics integrated out, P(report, state) by definition."""
    choices = [
        [(0, r.r0)]
        + [(1 + k * V + int(r.idx[j]), float(r.a[j])) for j in range(*r.indptr[i : i + 2]) for k in range(K)]
        for i in range(len(WORDS))
    ]
    p = np.zeros(OPTIONS ** len(WORDS))
    for state in itertools.product(*choices):
        codes = np.array([c for c, _ in state]) - 1
        signal = codes >= 0
        offsets = freeze(np.concatenate([[0], np.cumsum(signal)])[DOCUMENTS], np.int64)
        words, z = ((codes[signal] % V).astype(np.int32), (codes[signal] // V).astype(np.int32))
        joint = gibbs.log_joint(freeze(words, np.int32), offsets, freeze(z, np.int32), ALPHA, BETA, V)
        at = sum((c + 1) * OPTIONS**i for i, c in enumerate(codes.tolist()))
        p[at] = math.exp(joint) * math.prod(weight for _, weight in state)
    return p / p.sum()


@kernel
def count(z, word, V, K, seen):
    """Note the state: topic and word of each token are a digit."""
    at = 0
    for i in range(z.shape[0] - 1, -1, -1):
        at = at * (1 + K * V) + (1 + z[i] * V + word[i] if z[i] >= 0 else 0)
    seen[at] += 1


@kernel
def gibbs_chain(r, r0, documents, z, word, cwk, alpha, beta, key, sweeps, seen):
    V, K = cwk.shape
    indptr, idx, a = r
    ck, prior = cwk.sum(axis=0), np.full(V, beta)
    for s in range(sweeps):
        sweep_key = bits(bits(key, np.uint64(s)), np.uint64(0))
        last = documents.shape[0] - 1
        aware_gibbs.sweep_collapsed(
            indptr, idx, a, r0, 0, documents, 0, last, z, word, cwk, ck, alpha, prior, sweep_key
        )
        count(z, word, V, K, seen)


@kernel
def draw_phi(cwk, beta, key):
    V, K = cwk.shape
    phis, totals, ck = np.zeros((V, LANES), dtype=np.float32), np.empty(K), cwk.sum(axis=0)
    phi.gamma_block(cwk, beta, key, 0, V, phis, totals)
    for k in range(K):
        if ck[k] == 0:
            totals[k] = phi.empty_topic(beta, key, k, K, phis)
    for k in range(K):
        phis[:, k] *= np.float32(1.0 / totals[k])
    cwk[:] = 0
    return phis


@kernel
def dense_chain(r, r0, documents, z, word, cwk, alpha, beta, key, sweeps, seen):
    V, K = cwk.shape
    indptr, idx, a = r
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        phis, sweep_key = draw_phi(cwk, beta, bits(stream, np.uint64(1))), bits(stream, np.uint64(0))
        last = documents.shape[0] - 1
        aware_gibbs.sweep_given_phi(
            indptr, idx, a, r0, 0, documents, 0, last, z, word, phis, np.empty(0), alpha, cwk, sweep_key
        )
        count(z, word, V, K, seen)


@kernel
def mh_chain(r, r0, documents, z, word, cwk, alpha, tables, beta, key, sweeps, refresh, seen):
    V, K = cwk.shape
    _, idx, a = r
    keep, other = np.empty((V, K), np.float32), np.empty((V, K), np.int32)
    mass, total = np.empty((V, K), np.float32), np.empty(V)
    for s in range(sweeps):
        stream = bits(key, np.uint64(s))
        phis, sweep_key = draw_phi(cwk, beta, bits(stream, np.uint64(1))), bits(stream, np.uint64(0))
        if s % refresh == 0:
            mass[:] = phis[:, :K]
            for w in range(V):
                total[w] = mass[w].astype(np.float64).sum()
            mh._build_block(keep, other, mass, total, 0, V)
        mh.sweep_block(
            idx, a[0], r0, 0, documents, 0, documents.shape[0] - 1, z, word, phis, np.empty(0), keep, other, mass,
            total, z[:0], np.empty(0), alpha, tables[0], tables[1], cwk, sweep_key,
        )  # fmt: skip
        count(z, word, V, K, seen)


def start(r):
    return noise_aware.init(r, DOCUMENTS, V, K, ALPHA, BETA, key=1)


def follow(sampler, r, sweeps, key, refresh=3):
    z, word, cwk = (x.copy() for x in start(r)[:3])
    seen = np.zeros(OPTIONS ** len(WORDS), dtype=np.int64)
    state = (tuple(r[:3]), r.r0, DOCUMENTS, z, word, cwk, ALPHA)
    if sampler == "mh":
        tables = np.empty(K, np.float32), np.empty(K, np.int32)
        alias.build(ALPHA.copy(), *tables, np.empty(K, np.int32))
        mh_chain(*state, tables, BETA, derive(key), sweeps, refresh, seen)
    else:
        chain = gibbs_chain if sampler == "gibbs" else dense_chain
        chain(*state, BETA, derive(key), sweeps, seen)
    return z, word, seen


CASES = [(s, name) for s in ("gibbs", "dense") for name in REPORTS] + [("mh", "krr")]


@pytest.mark.parametrize(("sampler", "name"), CASES)
def test_samplers_have_the_exact_posterior(sampler, name):
    r = REPORTS[name]
    assert total_variation(follow(sampler, r, SWEEPS, key=11)[2], posterior(r)) < BAR


def test_a_sampler_that_believes_its_reports_is_caught():
    r = REPORTS["krr"]
    believed = follow("gibbs", r._replace(r0=1e-9), SWEEPS // 4, key=12)[2]
    assert total_variation(believed, posterior(r)) > 10 * BAR


@pytest.mark.parametrize(("sampler", "name"), CASES)
def test_the_chains_are_the_front_door(sampler, name):
    r = REPORTS[name]
    for sweeps in (1, 2, 3, 4, 10, 25):
        state, _ = noise_aware.run(r, DOCUMENTS, start(r), sweeps, 14, sampler, refresh=3)
        z, word, _ = follow(sampler, r, sweeps, 14)
        assert np.array_equal(z, state.z)
        assert np.array_equal(word, state.word)
