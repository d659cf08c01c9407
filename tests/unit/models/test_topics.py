import numpy as np
import pandas as pd
import polars as pl
import pytest

import tertulia.models.topics as module
from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.errors import InputError
from tertulia.models import Topics, UnknownWordsWarning

WORDS = ("rain", "sun", "cloud", "money", "bank", "loan")
PHI = np.array([[0.4, 0.3, 0.2, 0.04, 0.03, 0.03], [0.03, 0.03, 0.04, 0.2, 0.3, 0.4]])


def model(**changes):
    parts = {"topic_word": PHI, "vocabulary": Vocabulary(WORDS), "alpha": np.array([0.1, 0.3]), "weights": [0.25, 0.75]}
    return Topics(**{**parts, **changes})


def literal_theta(tokens, alpha, iterations=500):
    """Run the EM of the kernel's docstring, one token at a time."""
    theta = np.ones(2)
    for _ in range(iterations):
        shares = [theta * PHI[:, WORDS.index(word)] for word in tokens]
        theta = alpha + sum(share / share.sum() for share in shares)
    return theta / theta.sum()


def test_transform_gives_topic_shares_of_texts():
    theta = model().transform(["Rain, sun and a cloud.", "The BANK's loan!", "rain bank"])
    tokens = [["rain", "sun", "cloud"], ["bank", "loan"], ["rain", "bank"]]
    expected = [literal_theta(document, np.array([0.1, 0.3])) for document in tokens]
    np.testing.assert_allclose(theta, expected, atol=0.02)
    assert theta.argmax(axis=1)[:2].tolist() == [0, 1]


def test_texts_and_a_corpus_over_other_words_give_the_same_shares():
    texts = ["loan unknown rain", "sun sun"]
    corpus = Corpus.from_texts(texts)
    assert corpus.vocabulary.words != WORDS
    np.testing.assert_array_equal(model().transform(corpus), model().transform(texts))


def test_texts_are_cut_by_the_models_own_options():
    shouting = Vocabulary(("RAIN", "sun"))
    cased = Topics(np.eye(2), shouting, options=TextOptions(lowercase=False))
    assert cased.transform(["RAIN"])[0, 0] > 0.9
    with pytest.warns(UnknownWordsWarning):
        Topics(np.eye(2), shouting).transform(["RAIN"])


def test_documents_without_a_known_word_get_the_prior_mean_and_are_counted():
    with pytest.warns(UnknownWordsWarning, match="2 of 3 documents hold no word that the model knows"):
        theta = model().transform(["quux", "rain", ""])
    np.testing.assert_allclose(theta[[0, 2]], [[0.25, 0.75]] * 2, rtol=1e-6)
    assert np.isfinite(theta).all()


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_a_data_frame_is_its_texts_row_by_row(frame):
    texts = ["rain sun", None, "bank", "loan money"]
    rows = frame({"id": [7, 8, 9, 10], "text": texts, "rain": ["x", "y", "z", "u"]})
    with pytest.warns(UnknownWordsWarning, match="1 of 4 documents"):
        theta = model().transform(rows)
    with pytest.warns(UnknownWordsWarning, match="1 of 4 documents"):
        np.testing.assert_array_equal(theta, model().transform(["rain sun", "", "bank", "loan money"]))
    np.testing.assert_allclose(theta[1], [0.25, 0.75], rtol=1e-6)
    adapted = [model().adapt(documents).alpha for documents in (rows, ["rain sun", "bank", "loan money"])]
    np.testing.assert_array_equal(*adapted)
    drawn = model().to_pyldavis(rows)
    assert drawn["doc_lengths"].tolist() == [2, 1, 2]
    assert drawn["term_frequency"].tolist() == [1, 1, 0, 1, 1, 1]
    with pytest.raises(InputError, match=r"no column 'text', only \['body'\]"):
        model().transform(frame({"body": ["rain"]}))


def test_threads_and_company_do_not_change_a_bit():
    texts = [" ".join(np.random.default_rng(d).choice(WORDS, size=1 + d % 40)) for d in range(300)]
    one = model().transform(texts)
    for n_jobs in (2, 3, -1):
        assert np.array_equal(model().transform(texts, n_jobs=n_jobs), one)
    assert np.array_equal(model().transform(texts[::-1]), one[::-1])
    assert np.array_equal(model().transform(texts[:7]), one[:7])
    assert np.array_equal(model().adapt(texts, n_jobs=2).alpha, model().adapt(texts).alpha)


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_a_number_of_threads_that_cannot_be_is_named(n_jobs):
    with pytest.raises(InputError, match="-1 for all cores"):
        model().transform(["rain"], n_jobs=n_jobs)


def test_no_documents_give_no_rows():
    assert model().transform([]).shape == (0, 2)


def test_it_follows_scikit_learn():
    topics = model()
    assert topics.components_ is topics.topic_word
    assert topics.n_features_in_ == 6
    names = topics.get_feature_names_out()
    assert names.dtype == object
    assert names.tolist() == ["topic0", "topic1"]
    assert topics.fit(["rain"], None) is topics


def test_top_words_and_table_are_sorted():
    topics = model()
    assert topics.n_topics == 2
    assert topics.top_words(3) == [["rain", "sun", "cloud"], ["loan", "bank", "money"]]
    assert topics.top_words(100)[0] == [
        "rain",
        "sun",
        "cloud",
        "money",
        "bank",
        "loan",
    ]  # among equals, the first word comes first
    rows = topics.topics_table(2).rows()
    assert rows == [(1, 0.75, "loan bank"), (0, 0.25, "rain sun")]


def test_similar_finds_the_same_topics_in_another_order():
    table = model().similar(model(topic_word=PHI[::-1]))
    assert table["topic"].to_list() == [0, 1]
    assert table["other"].to_list() == [1, 0]
    assert table["similarity"].to_list() == [1.0, 1.0]
    assert table["other_words"][0].startswith("rain sun")


def test_similar_compares_other_vocabularies_on_common_words():
    other = Topics(
        np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 0.1, 0.1, 0.8]]), Vocabulary(("gold", "loan", "bank", "sun"))
    )
    table = model().similar(other).sort("topic")
    assert table["other"].to_list() == [1, 0]
    # Common words: sun, bank, loan. Topic 0 there: .3/.36, .03/.36, .03/.36; topic 1 of the other: .8, .1, .1
    minima = 0.8 + 2 * 0.03 / 0.36
    assert table["similarity"][0] == pytest.approx(minima / (2 - minima))


def test_similar_needs_a_common_word():
    with pytest.raises(InputError, match="share no word"):
        model().similar(Topics(np.eye(1), Vocabulary(("gold",))))


def test_topics_that_live_outside_the_common_words_are_like_nothing():
    other = Topics(np.array([[0.0, 1.0], [1.0, 0.0]]), Vocabulary(("rain", "gold")))
    assert other.similar(model()).sort("topic")["similarity"].to_list() == pytest.approx([0.0, 1.0])


def test_repr_shows_origin_and_topics():
    shown = repr(model(provenance={"method": "ftm", "parties": ["north", "south"]}))
    assert shown.splitlines() == [
        "Topics(2 topics over 6 words; ftm, 2 parties)",
        "    1  75.0%  loan bank money cloud rain sun",
        "    0  25.0%  rain sun cloud money bank loan",
    ]
    many = Topics(np.full((12, 2), 0.5), Vocabulary(("a", "b")))
    assert repr(many).endswith("... and 2 more: see topics_table()")


def test_weights_become_shares_and_single_numbers_serve_all_topics():
    topics = model(alpha=0.5, weights=np.array([30, 10]))
    assert topics.weights.tolist() == [0.75, 0.25]
    assert topics.alpha.tolist() == [0.5, 0.5]
    assert topics != model(alpha=0.5)


def test_without_weights_there_is_no_column_of_them(tmp_path):
    topics = Topics(PHI, Vocabulary(WORDS))
    assert topics.weights is None
    assert topics.topics_table(1).columns == ["topic", "words"]
    assert "%" not in repr(topics)
    assert topics != model(alpha=0.1)
    assert topics == Topics.load(topics.save(tmp_path / "model"))


def test_equality_is_bit_for_bit():
    assert model() == model()
    assert model() != model(topic_word=PHI.astype(np.float32))
    assert model() != model(alpha=np.array([0.1, np.nextafter(0.3, 1)]))
    assert model() != model(provenance={"method": "ftm"})
    assert model() != "a model"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"topic_word": PHI[:, :5]}, r"shape \(2, 5\): it must be \[topics, 6 words"),
        ({"topic_word": PHI[0]}, "topics, 6 words"),
        ({"topic_word": np.zeros((0, 6))}, "topics, 6 words"),
        ({"topic_word": PHI * [[1], [2]]}, "topic 1 has total probability 2: divide"),
        ({"topic_word": np.where(PHI == 0.4, np.nan, PHI)}, "non-finite"),
        ({"alpha": np.array([0.1, 0.0])}, "alpha must be positive"),
        ({"alpha": np.ones(3)}, "give one number, or 2"),
        ({"beta": -1.0}, "beta not negative"),
        ({"weights": np.zeros(2)}, "weights are all 0"),
        ({"weights": np.array([-1.0, 2.0])}, "none negative"),
        ({"provenance": {"party": object()}}, "provenance must be plain"),
        ({"provenance": {"loss": float("nan")}}, "provenance must be plain"),
    ],
)
def test_a_model_that_cannot_be_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        model(**changes)


@pytest.mark.parametrize(("documents", "words"), [("rain", r"write \[text\]"), (["rain", 7], "text 1 is int")])
def test_bad_documents_are_named(documents, words):
    with pytest.raises(InputError, match=words):
        model().transform(documents)


def test_provenance_may_hold_numpy_numbers():
    kept = model(provenance={"parties": ("north",), "rounds": np.int64(3), "scores": np.array([1.5])}).provenance
    assert kept == {"parties": ["north"], "rounds": 3, "scores": [1.5]}


def test_a_model_holds_no_documents():
    assert {part.name for part in module.fields(Topics)} == {
        "topic_word", "vocabulary", "alpha", "beta", "weights", "options", "provenance", "encoder", "ids", "retired",
        "names", "hidden",
    }  # fmt: skip


def test_adapting_fits_the_prior_to_ones_own_documents():
    model = Topics(np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]), Vocabulary(("rain", "sun", "money")), alpha=0.5)
    own = model.adapt(["rain rain rain rain", "rain rain", ""])
    assert own.alpha.sum() == pytest.approx(model.alpha.sum())
    assert own.alpha[0] > 0.9 * own.alpha.sum()
    assert own.topic_word is model.topic_word or np.array_equal(own.topic_word, model.topic_word)
    assert np.array_equal(model.alpha, [0.5, 0.5])
    assert np.allclose(model.adapt(["", "zzz"]).alpha, model.alpha)
