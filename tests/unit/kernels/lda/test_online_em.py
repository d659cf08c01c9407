"""The trainer: its starts, its choice of sampler, and the same bits at any number of threads."""

import tracemalloc

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels import lda
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.simd import add, dot, pad_with_zeros, total
from tertulia.kernels.lda.online_em import dense_step, epoch, sparse_counts
from tertulia.kernels.lda.online_em.batch import batches
from tertulia.kernels.lda.options import Learning

V, K = 120, 6


@pytest.fixture(scope="module")
def corpus():
    """Documents of two topics each, of words 20 k .. 20 k + 19; some documents are empty."""
    generator = np.random.default_rng(5)
    lengths = generator.integers(0, 60, size=400)
    topics = [generator.choice(generator.choice(K, size=2), size=n) for n in lengths]
    z = np.concatenate(topics)
    words = (20 * z + generator.integers(0, 20, size=len(z))).astype(np.int32)
    return words, np.concatenate([[0], np.cumsum(lengths)])


def train(corpus, **settings):
    return lda.train(*corpus, **{"V": V, "K": K, "alpha": 0.1, "beta": 0.01, "sweeps": 4, "key": 3, **settings})


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("sampler", lda.SAMPLERS)
@pytest.mark.parametrize("how", ["warm", "random", "topics"])
def test_same_bits_at_any_number_of_threads(corpus, sampler, how):
    how = np.random.default_rng(1).dirichlet(np.ones(V), size=K) if how == "topics" else how
    settings = {"sampler": sampler, "start": how, "learning": Learning(True, True, every=2)}
    one, two, four = (train(corpus, threads=t, **settings) for t in (1, 2, 4))
    assert equal(one, two)
    assert equal(one, four)
    assert not np.array_equal(one.z, train(corpus, key=4, **settings).z)


def test_an_epoch_of_few_topics_a_document_has_the_same_bits_at_any_number_of_threads(corpus, monkeypatch):
    monkeypatch.setattr(sparse_counts, "_CELLS", 40 * 320)  # common words and rare ones
    one, two, four = (train(corpus, threads=t, K=310, sweeps=0) for t in (1, 2, 4))
    assert equal(one, two)
    assert equal(one, four)
    assert not np.array_equal(one.z, train(corpus, K=310, sweeps=0, key=4).z)


def test_training_is_a_start_and_a_run(corpus):
    begun = train(corpus, sweeps=0)
    assert equal(train(corpus, sweeps=3), lda.run(*corpus, begun, 3, 3, "auto", phi="mean")[0])
    assert equal(train(corpus, sweeps=0, start="random"), lda.init(*corpus, V, K, 0.1, 0.01, key=3))


@pytest.mark.parametrize("topics", [K, 300])
def test_the_warm_start_has_found_the_topics(corpus, topics):
    """By both kinds of epoch: all topics in play, and the few of a document."""
    words, _ = corpus
    z = train(corpus, K=topics, sweeps=0).z
    together = np.zeros((K, topics))
    np.add.at(together, (words // 20, z), 1)
    assert together.max(axis=0).sum() > 0.5 * len(words)  # purity; uniform topics have 0.2


def test_a_start_from_topics_sees_the_document():
    """Word 0 is in both topics, word 1 in one of them: beside it, word 0 belongs there too."""
    topics = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    words, documents = np.tile([1, 1, 1, 1, 0], 2_000), np.arange(0, 10_001, 5)
    state = lda.train(words, documents, 3, 2, 0.1, 0.01, 0, 1, start=topics)
    share = (state.z.reshape(-1, 5)[:, 4] == 0).mean()
    assert share == pytest.approx(4.1 / 4.2, abs=4.5 * np.sqrt(0.024 / 2_000))


def test_a_start_from_topics_draws_words_that_they_lack_uniformly():
    state = lda.train(np.full(6_000, 1), np.arange(6_001), 2, 3, 0.1, 0.01, 0, 1, start=np.array([[1.0, 0.0]] * 3))
    assert np.abs(state.ck / 6_000 - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / 6_000)


def test_an_epoch_equals_its_formula(corpus):
    """Against a literal version in float64, batch by batch."""
    words, documents = (freeze(x, t) for x, t in zip(corpus, (np.int32, np.int64), strict=True))
    alpha, beta, key = np.linspace(0.05, 0.3, K), 0.02, derive(9)
    phi = epoch.all_topics(words, documents, V, alpha, beta, key)
    s = dense_step.random_stats(np.bincount(words, minlength=V), K, key, 1)[0][:, :K].astype(float)
    assert s.sum() == pytest.approx(len(words), rel=0.1)
    assert len(batches(documents)) > 5
    for t, (first, last) in enumerate(batches(documents)):
        topics = (s + beta) / (s.sum(axis=0) + V * beta)  # [V, K]
        expected = np.zeros_like(s)
        for d in range(first, last):
            mine = words[documents[d] : documents[d + 1]]
            theta = np.ones(K)
            for _ in range(4):
                r = theta * topics[mine]
                theta = alpha + (r / r.sum(axis=1, keepdims=True)).sum(axis=0)
            r = theta * topics[mine]
            np.add.at(expected, mine, r / r.sum(axis=1, keepdims=True))
        rho = (0.05 * len(batches(documents)) + t) ** -0.9
        s = (1 - rho) * s + rho * len(words) / (documents[last] - documents[first]) * expected
    assert np.allclose(phi[:, :K], (s + beta) / (s.sum(axis=0) + V * beta), rtol=2e-3, atol=1e-7)
    assert not phi[:, K:].any()


def test_ten_thousand_topics_of_a_million_words_have_no_matrix():
    """Words x topics would take 40 gigabytes, even if most pages were never touched."""
    many, words = 1_000_000, np.random.default_rng(1).integers(0, 1_000_000, size=20_000)
    tracemalloc.start()
    try:
        state = lda.train(words, np.arange(0, 20_001, 50), many, 10_000, 1e-3, 0.01, sweeps=1, key=1, threads=2)
        assert tracemalloc.get_traced_memory()[1] < 2**29
    finally:
        tracemalloc.stop()
    assert state.cwk.shape == (many, 10_000)
    assert state.cwk.sum() == state.ck.sum() == 20_000


def test_vector_sums():
    from tertulia.kernels.core.jit import kernel

    @kernel
    def sums(x, rows, r, scale):
        y = x.copy()
        add(y, scale, rows, r)
        return dot(x, rows, r), total(x), y

    for n in (1, 16, 17, 64, 100, 1000):
        generator = np.random.default_rng(n)
        x, rows = pad_with_zeros(generator.random(n)), np.stack([pad_with_zeros(generator.random(n))] * 3)
        rows[1] *= 2
        product, whole, y = sums(x, rows, 1, np.float32(0.5))
        assert product == pytest.approx(x @ rows[1], rel=1e-5)
        assert whole == pytest.approx(x.sum(), rel=1e-5)
        assert np.allclose(y, x + 0.5 * rows[1])


def test_the_choice_of_a_sampler():
    for topics, words, sampler in (
        (100, 20_000, "dense"),
        (400, 20_000, "dense"),
        (401, 20_000, "sparse"),
        (400, 1_000_000, "sparse"),
        (5_000, 20_000, "sparse"),
        (10_000, 1_000_000, "warp"),
    ):
        assert lda.choose(topics, words, 10_000_000) == sampler


@pytest.mark.parametrize("sampler", lda.SAMPLERS)
@pytest.mark.parametrize("how", ["warm", "random"])
def test_edges(sampler, how):
    none = np.array([], dtype=np.int32)
    for words, documents in ((none, [0]), (none, [0, 0, 0]), (np.array([0]), [0, 0, 1]), (np.array([1, 1]), [0, 2])):
        for topics in (1, 50):
            state = lda.train(words, documents, 3, topics, 0.1, 0.01, 2, 1, sampler=sampler, start=how, threads=3)
            assert state.ck.sum() == len(words)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "cold"}, "start = 'cold': choose 'warm' or 'random'"),
        ({"start": np.ones((K, V + 1))}, "6 topics and 120 words"),
        ({"start": np.full((K, V), np.nan)}, "non-finite"),
        ({"sampler": "light"}, "sampler = 'light'"),
        ({"K": 0}, "at least 1 topic"),
        ({"alpha": -1.0}, "positive"),
        ({"V": 10}, "outside 0..9"),
    ],
)
def test_bad_settings_are_named(corpus, change, message):
    with pytest.raises(InputError, match=message):
        train(corpus, **change)
