"""The trainer on one machine: what goes in, what comes out, and going on from a saved model."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tertulia.api.lda import LDA, extend, join
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.errors import ConfigError, InputError
from tertulia.kernels import lda
from tertulia.metrics import completion
from tertulia.models import Topics

EVERY_WORD = {"min_documents": 1, "max_share": 1.0}
THEMES = ("harbour", "garden", "engine", "violin")


def texts(n, seed, words=30, first=0):
    """Documents of one or two themes each, over words such as harbourac; `first` shifts to words not yet seen."""
    rng = np.random.default_rng(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    made = []
    for _ in range(n):
        pair = rng.choice(THEMES, 2)
        ranks = first + np.minimum(rng.geometric(0.12, 40) - 1, words - 1)
        made.append(" ".join(f"{pair[rng.integers(2)]}{letters[r // 26]}{letters[r % 26]}" for r in ranks))
    return made


def perplexity(model, documents):
    corpus = Corpus.from_texts(documents).encode(model.vocabulary)
    return completion(model.topic_word, model.alpha, corpus, smoothing=0.01).perplexity


@pytest.fixture(scope="module")
def model():
    return LDA(topics=4, sweeps=30, vocabulary=EVERY_WORD).fit(texts(200, 1), seed=3)


def test_each_theme_becomes_a_topic(model):
    found = [{word[:-2] for word in topic} for topic in model.top_words(5)]
    assert sorted(map(sorted, found)) == sorted([theme] for theme in THEMES)
    assert model.provenance["method"] == "lda"
    assert model.provenance["tokens"] == 200 * 40


def test_lists_frames_and_corpora_give_the_same_topics(model):
    documents = texts(200, 1)
    trainer = LDA(topics=4, sweeps=30, vocabulary=EVERY_WORD)
    assert trainer.fit(pl.DataFrame({"text": documents}), seed=3) == model
    assert trainer.fit(Corpus.from_texts(documents), seed=3) == model


def test_threads_do_not_change_the_topics(model):
    two = LDA(topics=4, sweeps=30, threads=2, vocabulary=EVERY_WORD).fit(texts(200, 1), seed=3)
    assert np.array_equal(two.topic_word, model.topic_word)


@pytest.mark.parametrize("sampler", ["auto", "gibbs", "warp"])
def test_training_ends_by_itself_and_says_after_how_many_sweeps(sampler):
    calls = []
    found = LDA(topics=4, sampler=sampler, vocabulary=EVERY_WORD).fit(
        texts(100, 1), progress=lambda *call: calls.append(call)
    )
    assert 40 <= found.provenance["sweeps"] < 300
    assert found.provenance["sweeps"] == calls[-1][0]
    assert calls[-1][1] < 1.01 * calls[0][1]  # clusters may be as good a start as it gets, and `warp` is not exact
    assert found.provenance["config"]["sweeps"] == "auto"
    bounded = LDA(topics=4, sampler=sampler, max_sweeps=7, vocabulary=EVERY_WORD).fit(texts(100, 1))
    assert bounded.provenance["sweeps"] == 7


def test_priors_are_learned_or_stay():
    few = {"topics": 4, "sweeps": 12, "vocabulary": EVERY_WORD}
    assert np.array_equal(LDA(**few, alpha=2.0, learn_alpha=False).fit(texts(100, 1)).alpha, np.full(4, 0.5))
    learned = LDA(**few, learn_beta=True).fit(texts(100, 1))
    assert np.ptp(learned.alpha) > 0
    assert learned.beta != LDA(**few).fit(texts(100, 1)).beta == LDA().beta


def test_another_seed_gives_other_topics(model):
    assert LDA(topics=4, sweeps=30, vocabulary=EVERY_WORD).fit(texts(200, 1), seed=4) != model


@pytest.mark.filterwarnings("ignore:2 of 4 documents hold no word")
def test_rare_and_common_words_are_pruned():
    documents = ["rain sun", "rain wind", "rain sun", "rain hail"]
    rules = {"min_documents": 2, "max_share": 0.5}
    assert LDA(topics=2, sweeps=1, vocabulary=rules).fit(documents).vocabulary.words == ("sun",)
    assert LDA(topics=2, sweeps=1, vocabulary=EVERY_WORD | {"max_words": 2}).fit(documents).vocabulary.words == (
        "rain",
        "sun",
    )


def test_a_mapped_corpus_reaches_the_kernels_without_a_copy(tmp_path, monkeypatch):
    Corpus.from_texts(texts(50, 1)).save(tmp_path)
    corpus = Corpus.load(tmp_path)
    given = []
    train = lda.train
    monkeypatch.setattr(lda, "train", lambda words, *rest, **more: given.append(words) or train(words, *rest, **more))
    LDA(topics=4, sweeps=1, vocabulary=EVERY_WORD).fit(corpus)
    assert np.shares_memory(given[0], corpus.words)
    assert isinstance(corpus.words.base, np.memmap)


def test_continuing_beats_a_new_start_with_as_many_sweeps(model, tmp_path):
    model.save(tmp_path)
    new, unseen = texts(15, 5), texts(100, 6)
    few = {"sweeps": 3, "vocabulary": EVERY_WORD}
    continued = LDA(**few).fit(new, start=Topics.load(tmp_path))
    restarted = LDA(topics=4, **few).fit(new)
    assert perplexity(continued, unseen) < 0.95 * perplexity(restarted, unseen)
    assert continued.provenance["tokens"] == (200 + 15) * 40


def test_continuing_learns_new_words_and_keeps_the_old(model):
    later = texts(100, 7, first=30)
    continued = LDA(sweeps=10, vocabulary=EVERY_WORD).fit(later, start=model)
    assert continued.vocabulary.words[: len(model.vocabulary)] == model.vocabulary.words
    assert len(continued.vocabulary) > len(model.vocabulary)
    unseen = texts(50, 8, first=30)
    assert perplexity(continued, unseen) < 0.5 * perplexity(extend(model.topics_, continued.vocabulary), unseen)
    assert perplexity(continued, texts(50, 9)) < 2.0 * perplexity(model, texts(50, 9))


def test_one_new_document_is_enough_to_continue(model):
    continued = LDA(sweeps=2).fit(texts(1, 5), start=model)
    assert continued.vocabulary == model.vocabulary  # no word of it is in two documents


def test_new_words_get_the_mass_of_words_never_seen():
    model = Topics(np.array([[0.75, 0.25], [0.5, 0.5]]), Vocabulary(("sun", "rain")))
    longer = extend(model, Vocabulary(("rain", "wind")))
    assert longer.vocabulary.words == ("sun", "rain", "wind")
    np.testing.assert_allclose(longer.topic_word, [[0.6, 0.2, 0.2], [1 / 3, 1 / 3, 1 / 3]])


def test_joined_models_weigh_as_much_as_they_have_seen():
    words = Vocabulary(("sun", "rain"))
    old = Topics(np.array([[1.0, 0.0], [0.5, 0.5]]), words, weights=np.array([0.5, 0.5]), provenance={"tokens": 300})
    new = Topics(np.array([[0.0, 1.0], [0.5, 0.5]]), words, weights=np.array([0.5, 0.5]), provenance={"tokens": 100})
    both = join(old, new)
    np.testing.assert_allclose(both.topic_word, [[0.75, 0.25], [0.5, 0.5]])
    assert both.provenance["tokens"] == 400
    assert np.array_equal(both.alpha, old.alpha)
    learned = join(old, replace(new, alpha=np.array([1.6, 0.1])))
    np.testing.assert_allclose(learned.alpha, [0.2, 0.1])  # a quarter of the way from 0.1 to 1.6, in logarithms
    assert both.provenance["continues"] == {"tokens": 300}
    unsaid = Topics(old.topic_word, words, provenance={"tokens": 300})  # nobody knows how many in which topic
    np.testing.assert_allclose(join(unsaid, new).topic_word, new.topic_word)
    assert join(unsaid, new).provenance["tokens"] == 100


def test_wrong_settings_are_explained(model):
    with pytest.raises(ConfigError, match=r"sampler = 'fast'"):
        LDA(sampler="fast").fit(texts(5, 1))
    with pytest.raises(ConfigError, match="leave `topics` out"):
        LDA(topics=7).fit(texts(5, 1), start=model)
    with pytest.raises(ConfigError, match="cut in another way"):
        LDA().fit(texts(5, 1), start=model, text=TextOptions(language="de"))
    with pytest.raises(InputError, match="holds a word to model"):
        LDA().fit(["", ""])


@pytest.mark.parametrize("sweeps", [0, "soon", 2.5])
def test_a_bad_number_of_sweeps_is_named_once(sweeps):
    """It may be a number or a word: one message says both."""
    with pytest.raises(ConfigError, match=r"^sweeps = .*: input should be [^;]*, or 'auto'$"):
        LDA(sweeps=sweeps).fit(texts(5, 1))
