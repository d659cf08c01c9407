"""The entry points of the private samplers: bookkeeping, repeatability, reports in blocks, errors that name names."""

from itertools import pairwise

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels import ftm_paper, lda
from tertulia.kernels.ftm_paper import log_phi as private_phi
from tertulia.kernels.ftm_paper import sentence
from tertulia.kernels.lda.options import Learning
from tertulia.kernels.reports import Channel, Reports, reports

V, K = 40, 5
KEY = bytes(range(32))
SAMPLERS = pytest.mark.parametrize(("sampler", "proposals"), [("gibbs", "stale"), ("mh", "stale"), ("mh", "fresh")])
NOISE = Channel("laplace", 3.0, V)


@pytest.fixture(scope="module")
def corpus():
    """Words, sentences and documents: longer than a block of reports, some documents empty."""
    generator = np.random.default_rng(0)
    documents = np.concatenate([[0], np.cumsum(generator.integers(0, 50, size=300))])
    sentences = np.unique(np.append(documents, generator.integers(0, documents[-1], size=800)))
    return generator.integers(0, V, size=documents[-1]).astype(np.int32), sentences, documents


@pytest.fixture(scope="module")
def noisy(corpus):
    return reports(corpus[0], NOISE, KEY, "corpus")


@pytest.fixture(scope="module")
def state(corpus):
    return lda.init(corpus[0], corpus[2], V, K, alpha=0.1, beta=0.01, key=1)


@pytest.fixture(scope="module")
def sentence_state(corpus):
    return sentence.init(*corpus, V, K, alpha=0.1, beta=0.01, key=1)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@SAMPLERS
def test_counts_are_those_of_the_topics(corpus, noisy, state, sentence_state, sampler, proposals):
    words, sentences, documents = corpus
    settings = {"sampler": sampler, "proposals": proposals, "reports": noisy}
    of_words, info = ftm_paper.run(words, documents, state, 2, 2, **settings)
    of_sentences, _ = sentence.run(*corpus, sentence_state, 2, 2, **settings)
    for after, z in ((of_words, of_words.z), (of_sentences, of_sentences.z.repeat(np.diff(sentences)))):
        cwk = np.zeros((V, K), dtype=np.int32)
        np.add.at(cwk, (words, z), 1)
        assert np.array_equal(after.cwk, cwk)
        assert np.array_equal(after.ck, cwk.sum(axis=0))
    assert info.changed > 0


@SAMPLERS
def test_same_bits_at_any_number_of_threads_and_from_any_source(corpus, noisy, sentence_state, sampler, proposals):
    def on_demand(first, last):
        return reports(corpus[0], NOISE, KEY, "corpus", first, last)

    settings = {"sampler": sampler, "proposals": proposals, "learning": Learning(True, True, every=2)}
    one, two, demanded = (
        sentence.run(*corpus, sentence_state, 3, 3, reports=source, threads=threads, **settings)[0]
        for source, threads in ((noisy, 1), (noisy, 2), (on_demand, 2))
    )
    assert equal(one, two)
    assert equal(one, demanded)
    assert not np.array_equal(one.alpha, sentence_state.alpha)
    assert not np.array_equal(one.z, sentence.run(*corpus, sentence_state, 3, 4, reports=noisy, **settings)[0].z)


@SAMPLERS
def test_sentences_of_one_word_are_lda(corpus, noisy, state, sampler, proposals):
    words, _, documents = corpus
    settings = {"sampler": sampler, "proposals": proposals, "reports": noisy}
    of_words = ftm_paper.run(words, documents, state, 2, 2, **settings)[0]
    assert equal(of_words, sentence.run(words, np.arange(len(words) + 1), documents, state, 2, 2, **settings)[0])


@SAMPLERS
def test_the_given_state_is_not_touched(corpus, noisy, sentence_state, sampler, proposals):
    before = [np.copy(x) for x in (*corpus, *sentence_state, *noisy)]
    sentence.run(*corpus, sentence_state, 1, 5, sampler=sampler, proposals=proposals, reports=noisy)
    assert equal(before, (*corpus, *sentence_state, *noisy))


def test_reports_without_noise_are_no_reports(corpus, state):
    words, _, documents = corpus
    plain = Reports(np.arange(len(words) + 1), words, np.ones(len(words)), np.ones(len(words), dtype=np.float32), 0.0)
    with_them = ftm_paper.run(words, documents, state, 2, 2, reports=plain)[0]
    assert equal(with_them, ftm_paper.run(words, documents, state, 2, 2)[0])


def test_words_say_what_tokens_count_for_and_reports_what_is_likely(corpus, noisy, state):
    words, _, documents = corpus
    other = (words + 1) % V
    after = ftm_paper.run(other, documents, state, 2, 2, reports=noisy)[0]
    assert np.array_equal(after.cwk.sum(axis=1), np.bincount(other, minlength=V))


def test_log_phi_is_finite_and_sums_to_one_even_in_an_empty_topic():
    cwk = np.zeros((2_000, 3), dtype=np.int32)
    cwk[:, 0] = np.random.default_rng(0).integers(0, 9, size=2_000)
    cwk[7, 1] = 5
    log_phi = private_phi.draw_log_phi(cwk, 0.001, np.uint64(1), 1)
    assert np.isfinite(log_phi).all()
    assert np.allclose(np.exp(log_phi.astype(float)).sum(axis=0), 1.0, atol=1e-4)
    assert np.array_equal(log_phi, private_phi.draw_log_phi(cwk, 0.001, np.uint64(1), 3))
    mean = private_phi.mean_log_phi(cwk, cwk.sum(axis=0), 0.001)
    assert np.allclose(np.exp(mean.astype(float)).sum(axis=0), 1.0, atol=1e-4)


def test_draws_of_log_phi_have_the_moments_of_a_dirichlet():
    cwk = np.array([[3], [0], [1]], dtype=np.int32)
    draws = np.exp([private_phi.draw_log_phi(cwk, 0.5, np.uint64(i), 1)[:, 0] for i in range(20_000)])
    shape = cwk[:, 0] + 0.5
    mean, total = shape / shape.sum(), shape.sum()
    spread = np.sqrt(mean * (1 - mean) / (total + 1))
    assert np.abs(draws.mean(axis=0) - mean).max() < 4.5 * spread.max() / np.sqrt(20_000)
    assert np.allclose(draws.std(axis=0), spread, rtol=0.03)


@SAMPLERS
def test_edges(sampler, proposals):
    none = np.array([], dtype=np.int32)
    for words, sentences, documents in ((none, [0], [0]), (none, [0], [0, 0]), (np.array([0]), [0, 0, 1], [0, 0, 1])):
        state = sentence.init(words, sentences, documents, V=1, K=1, alpha=0.1, beta=0.01, key=1)
        after, info = sentence.run(
            words, sentences, documents, state, 2, 1, sampler=sampler, proposals=proposals, threads=3
        )
        assert info.changed == 0
        assert equal(after, state)


def test_init_from_topics_takes_one_word_of_the_sentence():
    topics = np.array([[0.1, 0.0], [0.3, 0.2]])
    words, n = np.tile([0, 1], 20_000), 20_000
    state = sentence.init_from_topics(words, np.arange(0, 2 * n + 1, 2), [0, 2 * n], topics, 0.1, 0.01, key=1)
    share = 0.5 * 0.75 + 0.5 * 1.0  # of topic 1, by the first word or by the second
    assert abs(state.z.mean() - share) < 4.5 * np.sqrt(share * (1 - share) / n)
    assert state.ck.sum() == 2 * n


def test_init_draws_topics_of_sentences_uniformly(corpus, sentence_state):
    assert len(sentence_state.z) == len(corpus[1]) - 1
    shares = np.bincount(sentence_state.z, minlength=K) / len(sentence_state.z)
    assert np.abs(shares - 1 / K).max() < 4.5 * np.sqrt(0.16 / len(sentence_state.z))
    assert all(set(range(K)) >= set(sentence_state.z[a:b]) for a, b in pairwise([0, 5, 10]))


def test_bad_runs_are_named(corpus, noisy, state):
    words, _, documents = corpus
    for change, message in (
        ({"sampler": "warp"}, "sampler = 'warp': choose one of gibbs, mh"),
        ({"proposals": "new"}, "proposals = 'new'"),
        ({"phi": "mode"}, "phi = 'mode'"),
        ({"sweeps": -1}, "sweeps = -1"),
        ({"threads": 0}, "threads = 0"),
        ({"state": state._replace(z=state.z[1:])}, "another corpus"),
        ({"reports": noisy._replace(indptr=noisy.indptr[:-1])}, "incomplete"),
        ({"reports": noisy._replace(idx=noisy.idx + V)}, "outside 0..39"),
        ({"reports": noisy._replace(idx=noisy.idx[1:])}, "incomplete"),
    ):
        with pytest.raises(InputError, match=message):
            ftm_paper.run(words, documents, **{"state": state, "sweeps": 1, "key": 1, **change})
    with pytest.raises(InputError, match="where a sentence ends"):
        sentence.init(words, [0, len(words)], documents, V, K, 0.1, 0.01, 1)
