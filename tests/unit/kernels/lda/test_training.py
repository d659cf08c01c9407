"""The trainer: its starts, its choice of sampler, and the same bits at any number of threads."""

import tracemalloc

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels import lda
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
@pytest.mark.parametrize("how", ["clusters", "random", "topics"])
def test_same_bits_at_any_number_of_threads(corpus, sampler, how):
    how = np.random.default_rng(1).dirichlet(np.ones(V), size=K) if how == "topics" else how
    settings = {"sampler": sampler, "start": how, "learning": Learning(True, True, every=2)}
    one, two, four = (train(corpus, threads=t, **settings) for t in (1, 2, 4))
    assert equal(one, two)
    assert equal(one, four)
    assert not np.array_equal(one.z, train(corpus, key=4, **settings).z)


@pytest.mark.parametrize("sampler", ["gibbs", "sparse", "warp"])
def test_training_is_a_start_and_a_run(corpus, sampler):
    begun = train(corpus, sweeps=0, sampler=sampler)
    assert equal(train(corpus, sweeps=3, sampler=sampler), lda.run(*corpus, begun, 3, 3, sampler, phi="mean")[0])


def test_without_sweeps_the_mean_is_the_start(corpus):
    begun = train(corpus, sweeps=0, start="random")
    assert equal(begun[:5], lda.init(*corpus, V, K, 0.1, 0.01, key=3)[:5])
    assert np.array_equal(begun.mean, begun.cwk)


@pytest.mark.parametrize("sampler", lda.SAMPLERS)
def test_to_watch_changes_nothing(corpus, sampler):
    settings = {"sampler": sampler, "sweeps": 25, "learning": Learning(True, every=3)}
    seen = []
    assert equal(train(corpus, **settings), train(corpus, progress=lambda *call: seen.append(call), **settings))
    sweeps, perplexities = zip(*seen, strict=True)
    assert sweeps[-1] == 25
    assert all(1.0 < p < V for p in perplexities[-2:])


@pytest.mark.parametrize("sampler", lda.SAMPLERS)
def test_training_ends_by_itself(corpus, sampler):
    seen = []
    state = train(corpus, sampler=sampler, sweeps=None, learning=Learning(True), progress=lambda s, _: seen.append(s))
    together = np.zeros((K, K))
    np.add.at(together, (corpus[0] // 20, state.z), 1)
    assert 40 <= seen[-1] < 400
    assert together.max(axis=0).sum() > 0.75 * len(corpus[0])  # purity; uniform topics have 0.2


def test_clusters_are_nearer_to_the_topics_than_chance(corpus):
    words, _ = corpus
    shares = []
    for start in ("clusters", "random"):
        together = np.zeros((K, K))
        np.add.at(together, (words // 20, train(corpus, sweeps=0, start=start).z), 1)
        shares.append(together.max(axis=0).sum() / len(words))
    assert shares[0] > 0.35
    assert shares[1] < 0.22


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


def test_the_choice_of_a_sampler():
    for topics, words, most, sampler in (
        (100, 20_000, 9_000, "blocked"),
        (5_000, 20_000, 9_000, "blocked"),
        (100, 20_000, 2**24 - 1, "blocked"),
        (100, 20_000, 2**24, "sparse"),  # float32 does not count that far
        (5_000, 30_000, 9_000, "sparse"),
        (400, 1_000_000, 9_000, "sparse"),
        (10_000, 20_000, 9_000, "warp"),
        (10_000, 1_000_000, 9_000, "warp"),
    ):
        assert lda.choose(topics, words, most) == sampler


@pytest.mark.parametrize("sampler", lda.SAMPLERS)
@pytest.mark.parametrize("how", ["clusters", "random"])
@pytest.mark.parametrize("sweeps", [2, None])
def test_edges(sampler, how, sweeps):
    """No tokens, empty documents, words that are absent, fewer tokens than topics."""
    none, settings = np.array([], dtype=np.int32), {"sampler": sampler, "start": how, "threads": 3, "most_sweeps": 70}
    for words, documents in ((none, [0]), (none, [0, 0, 0]), (np.array([0]), [0, 0, 1]), (np.array([1, 1]), [0, 2])):
        for topics in (1, 50):
            state = lda.train(words, documents, 3, topics, 0.1, 0.01, sweeps, 1, learning=Learning(True), **settings)
            assert state.ck.sum() == len(words)
            assert np.isfinite(state.alpha).all()
            assert lda.topic_word(state).sum() == pytest.approx(topics)
            assert lda.topic_sizes(state).sum() == pytest.approx(len(words))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "cold"}, "start = 'cold': choose 'clusters' or 'random'"),
        ({"start": np.ones((K, V + 1))}, "6 topics and 120 words"),
        ({"start": np.full((K, V), np.nan)}, "non-finite"),
        ({"sampler": "light"}, "sampler = 'light'"),
        ({"sweeps": -1}, "sweeps = -1"),
        ({"sweeps": None, "most_sweeps": -1}, "sweeps = -1"),
        ({"K": 0}, "at least 1 topic"),
        ({"alpha": -1.0}, "positive"),
        ({"V": 10}, "outside 0..9"),
    ],
)
def test_bad_settings_are_named(corpus, change, message):
    with pytest.raises(InputError, match=message):
        train(corpus, **change)
