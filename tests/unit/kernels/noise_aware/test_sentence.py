"""The entry points of noise-aware SentenceLDA: blocks, threads, counts, starts and refusals."""

import functools

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.noise_aware import sentence
from tertulia.kernels.reports import Channel, reports

V, K, D, LENGTH, SENTENCE = 50, 3, 150, 60, 6
N = D * LENGTH
DOCUMENTS, SENTENCES = np.arange(0, N + 1, LENGTH), np.arange(0, N + 1, SENTENCE)
WORDS = np.random.default_rng(1).integers(0, V, N).astype(np.int32)
UNITS = (SENTENCES, DOCUMENTS)
CHANNELS = {"laplace": Channel("laplace", 3.0, V), "krr": Channel("krr", 3.0, V)}


def source(name):
    return functools.partial(reports, WORDS, CHANNELS[name], bytes(32), "corpus")


@pytest.mark.parametrize("name", CHANNELS)
def test_blocks_and_threads_change_no_bit_and_counts_are_of_inferred_words(name):
    whole = source(name)(0, N)
    state = sentence.init(whole, *UNITS, V, K, 0.1, 0.1, 1)
    once, info = sentence.run(whole, *UNITS, state, 12, 2, learning=Learning(True))
    again, _ = sentence.run(source(name), *UNITS, state, 12, 2, learning=Learning(True), threads=3)
    assert all(np.array_equal(x, y) for x, y in zip(once, again, strict=True))
    assert 0 < info.changed < len(SENTENCES)
    signal = once.word >= 0
    assert 0 < signal.sum() < N
    cwk = np.zeros((V, K), dtype=int)
    np.add.at(cwk, (once.word[signal], once.z.repeat(SENTENCE)[signal]), 1)
    assert np.array_equal(cwk, once.cwk)
    named = {(i, int(j)) for i in range(N) for j in whole.idx[whole.indptr[i] : whole.indptr[i + 1]]}
    assert all((i, int(once.word[i])) in named for i in np.flatnonzero(signal))
    assert sentence.topic_word(once).sum(axis=1) == pytest.approx(1)
    assert np.ptp(once.alpha) > 0


def test_a_start_from_topics_uses_them_and_long_sentences_do_not_underflow():
    length = 2_000
    words = np.repeat(np.arange(K), length).astype(np.int32)
    r = reports(words, Channel("krr", 12.0, V), bytes(32), "easy")
    bounds = np.arange(0, K * length + 1, length)
    state = sentence.init_from_topics(r, bounds, bounds, np.eye(K, V) + 1e-6, 10.0, 0.1, 1)
    assert np.array_equal(state.z, np.arange(K))
    state, _ = sentence.run(r, bounds, bounds, state, 2, 1, phi="mean")
    assert np.array_equal(state.z, np.arange(K))


def test_what_does_not_fit_is_refused():
    r = source("krr")(0, N)
    state = sentence.init(r, *UNITS, V, K, 0.1, 0.1, 1)
    with pytest.raises(InputError, match="where a sentence ends"):
        sentence.run(r, SENTENCES[::7], DOCUMENTS, state, 1, 2)
    with pytest.raises(InputError, match="another corpus"):
        sentence.run(r, *UNITS, state._replace(word=state.word[:-1]), 1, 2)
    with pytest.raises(InputError, match="more topics"):
        sentence.run(r, *UNITS, state._replace(z=state.z + K), 1, 2)
    with pytest.raises(InputError, match="sweeps"):
        sentence.run(r, *UNITS, state, -1, 2)
