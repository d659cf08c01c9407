"""The entry points of the noise-aware samplers: blocks, threads, priors and refusals."""

import functools

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels import lda, noise_aware
from tertulia.kernels.core.jit import kernel
from tertulia.kernels.core.rng import derive, uniform32
from tertulia.kernels.core.simd import draw, pad_with_zeros
from tertulia.kernels.lda.counts import counts, frequency
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.lda.phi import draw_phi
from tertulia.kernels.reports import Channel, Reports, reports

V, K, D, LENGTH = 50, 3, 200, 60
DOCUMENTS = np.arange(0, D * LENGTH + 1, LENGTH)
WORDS = np.random.default_rng(1).integers(0, V, D * LENGTH).astype(np.int32)
CHANNELS = {
    "laplace": Channel("laplace", 3.0, V),
    "krr": Channel("krr", 3.0, V),
    "subset": Channel("subset", 1.0, V),
}


def source(name):
    return functools.partial(reports, WORDS, CHANNELS[name], bytes(32), "corpus")


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("name", "sampler"),
    [("laplace", "dense"), ("laplace", "gibbs"), ("subset", "dense"), ("krr", "mh"), ("krr", "dense"), ("krr", "warp")],
)
def test_blocks_and_threads_change_no_bit(name, sampler):
    whole = source(name)(0, len(WORDS))
    state = noise_aware.init(whole, DOCUMENTS, V, K, 0.1, 0.1, 1)
    assert same(state, noise_aware.init(source(name), DOCUMENTS, V, K, 0.1, 0.1, 1))
    once, info = noise_aware.run(whole, DOCUMENTS, state, 3, 2, sampler)
    again, same_info = noise_aware.run(source(name), DOCUMENTS, state, 3, 2, sampler, threads=3)
    assert same(once, again)
    assert info.changed == same_info.changed > 0


@pytest.mark.parametrize(
    ("name", "sampler"), [("laplace", "dense"), ("laplace", "gibbs"), ("krr", "mh"), ("krr", "warp")]
)
@pytest.mark.parametrize("beta", [0.1, np.linspace(0.05, 0.2, V)])
def test_counts_are_those_of_inferred_words(name, sampler, beta):
    r = source(name)(0, len(WORDS))
    state = noise_aware.init(r, DOCUMENTS, V, K, 0.1, beta, 1)
    state, _ = noise_aware.run(r, DOCUMENTS, state, 4, 2, sampler, Learning(True, True, every=2))
    signal = state.z >= 0
    assert np.array_equal(signal, state.word >= 0)
    assert 0 < signal.sum() < len(WORDS)
    cwk = np.zeros((V, K), dtype=int)
    np.add.at(cwk, (state.word[signal], state.z[signal]), 1)
    assert np.array_equal(cwk, state.cwk)
    assert np.array_equal(cwk.sum(axis=0), state.ck)
    named = {(i, int(j)) for i in range(len(WORDS)) for j in r.idx[r.indptr[i] : r.indptr[i + 1]]}
    assert all((i, int(state.word[i])) in named for i in np.flatnonzero(signal))
    assert noise_aware.topic_word(state).sum(axis=1) == pytest.approx(1)
    assert np.ptp(state.alpha) > 0
    assert np.ndim(state.beta) == np.ndim(beta)


@kernel
def redraw(words, documents, z, phi, alpha, key):
    """Partially collapsed Gibbs as it is written down: p(z_i = k) ∝ (C_dk + alpha_k) phi_kw."""
    running = np.empty(alpha.shape[0], dtype=np.float32)
    for d in range(documents.shape[0] - 1):
        weight = alpha.copy()
        for i in range(documents[d], documents[d + 1]):
            weight[z[i]] += np.float32(1.0)
        for i in range(documents[d], documents[d + 1]):
            weight[z[i]] -= np.float32(1.0)
            z[i] = draw(weight, phi, words[i], running, uniform32(key, np.uint64(i)), z[i])
            weight[z[i]] += np.float32(1.0)


def plain(sampler, state):
    """The topics after three sweeps with key 2 over the words themselves."""
    if sampler == "gibbs":
        start = lda.LDAState(state.z, state.cwk, state.ck, state.alpha, 0.1)
        return lda.run(WORDS, DOCUMENTS, start, 3, 2, sampler)[0].z
    z = state.z.copy()
    for s in range(3):
        phi = draw_phi(counts(WORDS, z, V, K), frequency(z, K), 0.1, derive(derive(2, s), 1), threads=1)
        redraw(WORDS, DOCUMENTS, z, phi, pad_with_zeros(state.alpha), derive(derive(2, s), 0))
    return z


@pytest.mark.parametrize("sampler", ["dense", "gibbs"])
def test_without_noise_it_is_plain_lda(sampler):
    n = len(WORDS)
    exact = Reports(np.arange(n + 1), WORDS, np.ones(n, np.float32), np.ones(n, np.float32), 0.0)
    state = noise_aware.init(exact, DOCUMENTS, V, K, 0.1, 0.1, 1)
    assert state.z.min() >= 0
    assert np.bincount(state.z, minlength=K) / n == pytest.approx(1 / K, abs=0.02)
    ours, _ = noise_aware.run(exact, DOCUMENTS, state, 3, 2, sampler)
    assert np.array_equal(ours.word, WORDS)
    assert np.mean(ours.z == plain(sampler, state)) > 0.999  # sums are rounded in another order


def test_a_start_from_topics_uses_them():
    topics = np.eye(K, V) + 1e-6
    r = reports(np.repeat(np.arange(K), 40).astype(np.int32), Channel("krr", 12.0, V), bytes(32), "easy")
    state = noise_aware.init_from_topics(r, np.array([0, 3 * 40]), topics, 10.0, 0.1, 1)
    assert np.array_equal(state.z, np.repeat(np.arange(K), 40))


def test_an_empty_corpus_is_fine():
    r = reports(np.empty(0, np.int32), CHANNELS["krr"], bytes(32), "none")
    for sampler in noise_aware.SAMPLERS:
        state, info = noise_aware.run(
            r, np.array([0]), noise_aware.init(r, np.array([0, 0]), V, K, 0.1, 0.1, 1), 2, 2, sampler
        )
        assert (len(state.z), info.changed) == (0, 0)


def test_what_does_not_fit_is_refused():
    r, many = source("krr")(0, len(WORDS)), source("subset")(0, len(WORDS))
    state = noise_aware.init(r, DOCUMENTS, V, K, 0.1, 0.1, 1)
    for sampler in ("mh", "warp"):
        with pytest.raises(InputError, match="one word each"):
            noise_aware.run(many, DOCUMENTS, state, 1, 2, sampler)
    with pytest.raises(InputError, match="another corpus"):
        noise_aware.run(r, DOCUMENTS[:-1], state, 1, 2)
    with pytest.raises(InputError, match="another state"):
        noise_aware.run(r, DOCUMENTS, state._replace(z=state.z + K), 1, 2)
    with pytest.raises(InputError, match="damaged"):
        noise_aware.run(r, DOCUMENTS, state._replace(word=np.full_like(state.word, -1)), 1, 2)
    with pytest.raises(InputError, match="sampler"):
        noise_aware.run(r, DOCUMENTS, state, 1, 2, "alias")
    with pytest.raises(InputError, match="beta"):
        noise_aware.init(r, DOCUMENTS, V, K, 0.1, np.zeros(V), 1)
    with pytest.raises(InputError, match="sweeps"):
        noise_aware.run(r, DOCUMENTS, state, -1, 2)
