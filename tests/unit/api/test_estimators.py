"""Trainers as scikit-learn's users know estimators: the whole of its checks, and what they combine them with."""

import inspect
import pickle
import typing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils.estimator_checks import check_estimator

import tertulia as tt
from tertulia.api.arguments import LDAArguments, NeuralArguments
from tertulia.api.trainers import FitOptions
from tertulia.applications import compare
from tertulia.errors import ConfigError, InputError
from tertulia.methods.prevalence.settings import PrevalenceSettings
from tertulia.runs.settings import RunSettings

SKIPPED = {"check_array_api_input"}  # skips itself unless SCIPY_ARRAY_API is set: our arrays are NumPy's
SMALL = {"topics": 3, "sweeps": 5}


THEMES = ["river", "engine", "violin"]


@pytest.fixture(scope="module")
def texts():
    """Sixty texts of one theme each, of words that are in about a third of them."""
    rng = np.random.default_rng(0)
    return [" ".join(THEMES[i % 3] + letter for letter in rng.choice(list("abcdefgh"), 20)) for i in range(60)]


@pytest.fixture(scope="module")
def counts(texts):
    return CountVectorizer().fit_transform(texts)


@pytest.mark.filterwarnings("ignore")  # it provokes them
def test_all_of_scikit_learns_checks_hold_on_counts():
    found = check_estimator(tt.LDA(**SMALL), on_fail=None, on_skip=None)
    assert [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] != "passed"} <= SKIPPED
    assert len(found) > 40


def test_fit_returns_the_estimator_which_carries_the_topics(texts, tmp_path):
    model = tt.LDA(**SMALL)
    assert model.fit(texts) is model
    assert isinstance(model.topics_, tt.Topics)
    assert model.top_words(4) == model.topics_.top_words(4)
    assert len(model) == model.n_topics == 3
    assert tt.Topics.load(model.save(tmp_path / "model")) == model == model.topics_
    np.testing.assert_array_equal(model.transform(texts), model.topics_.transform(texts))


def test_settings_and_what_was_learned_do_not_meet(texts):
    model = tt.LDA(alpha=4.0, **SMALL)
    assert model.alpha == 4.0
    model.fit(texts)
    np.testing.assert_array_equal(model.alpha, model.topics_.alpha)
    assert model.get_params()["alpha"] == clone(model).alpha == 4.0
    assert "topics_" not in vars(clone(model))


def test_counts_dense_sparse_and_framed_are_the_same(counts):
    dense = tt.LDA(**SMALL).fit(counts.toarray())
    frame = pl.DataFrame(counts.toarray(), schema=[f"x{v}" for v in range(counts.shape[1])])
    for same in (
        counts,
        sparse.csc_array(counts),
        frame,
        pd.DataFrame(counts.toarray(), columns=frame.columns),
        counts.toarray().tolist(),
    ):
        assert tt.LDA(**SMALL).fit(same) == dense
        np.testing.assert_array_equal(dense.transform(same), dense.transform(counts))


def test_counts_give_what_texts_give(texts):
    """The same words, in the same order, are the same corpus but for the places of words in their documents."""
    words = {"min_documents": 1, "max_share": 1.0}
    model = tt.LDA(topics=3, sweeps=50, vocabulary=words).fit(texts)
    vectoriser = CountVectorizer(vocabulary=model.vocabulary.words)
    from_counts = tt.LDA(topics=3, sweeps=50).fit(vectoriser.transform(texts))
    best = np.corrcoef(model.topic_word, from_counts.topic_word)[:3, 3:].max(axis=1)
    assert best.min() > 0.9


def test_a_pipeline_a_union_and_a_search(texts):
    labels = [text.split()[0][:3] for text in texts]
    pipeline = make_pipeline(
        make_union(tt.LDA(**SMALL), make_pipeline(CountVectorizer(), TruncatedSVD(2))), LogisticRegression()
    )
    assert pipeline.fit(texts, labels).predict(texts[:5]).shape == (5,)
    search = GridSearchCV(
        make_pipeline(CountVectorizer(), tt.LDA(**SMALL), LogisticRegression()), {"lda__topics": [2, 4]}, cv=2
    )
    assert search.fit(texts, labels).best_params_["lda__topics"] in (2, 4)
    assert search.best_estimator_[1].n_topics == search.best_params_["lda__topics"]


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_output_in_frames(kind, frame, texts):
    out = tt.LDA(**SMALL).set_output(transform=kind).fit_transform(texts)
    assert isinstance(out, frame)
    assert list(out.columns) == ["topic0", "topic1", "topic2"]
    np.testing.assert_allclose(np.asarray(out).sum(axis=1), 1.0, rtol=1e-6)
    with pytest.raises(ValueError, match="use 'default', 'pandas' or 'polars'"):
        tt.LDA().set_output(transform="csv")


def test_pandas_rows_keep_their_index(texts):
    frame = pd.DataFrame({"text": texts}, index=range(100, 160))
    out = tt.LDA(**SMALL).set_output(transform="pandas").fit_transform(frame)
    assert list(out.index) == list(range(100, 160))


def test_partial_fit_goes_on(texts):
    model = tt.LDA(sweeps=5, topics=3).partial_fit(texts[:30])
    seen = model.provenance["tokens"]
    assert model.partial_fit(texts[30:]) is model
    assert model.provenance["tokens"] > seen
    again = tt.LDA(sweeps=5).fit(texts[30:], start=tt.LDA(**SMALL).fit(texts[:30]))
    np.testing.assert_array_equal(model.topic_word, again.topic_word)


def test_random_state_and_jobs(texts):
    same = tt.LDA(random_state=3, **SMALL).fit(texts)
    assert same == tt.LDA(**SMALL).fit(texts, seed=3)
    threaded = tt.LDA(random_state=3, n_jobs=2, **SMALL).fit(texts)
    assert threaded.provenance["config"]["threads"] == 2
    np.testing.assert_array_equal(same.topic_word, threaded.topic_word)
    drawn = [tt.LDA(random_state=np.random.default_rng(s), **SMALL).fit(texts) for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({tt.LDA(random_state=None)._seed() for _ in range(5)}) > 1
    with pytest.raises(ConfigError, match=r"random_state = 'x'"):
        tt.LDA(random_state="x").fit(texts)


@pytest.mark.parametrize("name", ["n_topics", "n_components", "num_topics", "k"])
def test_names_of_other_libraries_get_a_hint(name):
    with pytest.raises(ConfigError, match=f"unknown key '{name}': it is called 'topics' here"):
        tt.LDA(**{name: 5})
    with pytest.raises(ConfigError, match="it is called 'topics' here"):
        tt.LDA().set_params(**{name: 5})


def test_what_is_not_fitted_says_so():
    for call in (lambda m: m.transform(["rain"]), lambda m: m.top_words(), lambda m: len(m), lambda m: m.topic_word):
        with pytest.raises(NotFittedError, match="call `fit` first"):
            call(tt.LDA())
    with pytest.raises(AttributeError, match="no attribute 'tpoics'"):
        _ = tt.LDA().tpoics


def test_it_travels_to_other_processes(texts):
    model = tt.LDA(**SMALL).fit(texts)
    assert pickle.loads(pickle.dumps(model)) == model


def test_matrices_that_are_none(counts):
    model = tt.LDA(**SMALL).fit(counts)
    with pytest.raises(ValueError, match=f"X has 2 features, but LDA is expecting {counts.shape[1]} features"):
        model.transform(counts[:, :2])
    with pytest.raises(InputError, match="Negative values"):
        tt.LDA().fit(-counts)
    with pytest.raises(InputError, match="reads sentences"):
        tt.CombinedTM().fit(counts)
    with pytest.raises(ConfigError, match="cannot go on from a model"):
        tt.ProdLDA().fit(counts, start=model)


def test_a_neural_model_on_counts(counts):
    model = tt.ProdLDA(topics=3, epochs=2).fit(counts)
    assert model.transform(counts).shape == (counts.shape[0], 3)
    assert repr(tt.ProdLDA(topics=3)) == "ProdLDA(topics=3)"


# --- what documents can be --------------------------------------------------------------------------------------------


def test_rows_tokens_and_frames_are_the_same_documents(texts):
    model = tt.LDA(**SMALL).fit(texts)
    rows = [{"body": text, "id": str(i)} for i, text in enumerate(texts)]
    frame = pd.DataFrame(rows)
    for documents, column in ((rows, "body"), (frame, "body"), (pl.DataFrame(rows), "body"), (frame["body"], None)):
        assert tt.LDA(**SMALL).fit(documents, column=column) == model
        np.testing.assert_array_equal(model.transform(documents, column=column), model.transform(texts))
    tokens = [text.split() for text in texts]
    assert tt.LDA(**SMALL).fit(tokens) == model
    np.testing.assert_array_equal(model.transform(tokens), model.transform(texts))


def test_rows_that_are_missing_stay_in_their_places(texts):
    model = tt.LDA(**SMALL).fit(texts)
    rows = [{"text": texts[0]}, {"text": None}, {}, {"text": texts[1]}]
    with pytest.warns(UserWarning, match="2 of 4 documents"):
        theta = model.transform(rows)
    np.testing.assert_array_equal(theta[[0, 3]], model.transform(texts[:2]))
    tokens = [texts[0].split(), None, [], texts[1].split()]
    with pytest.warns(UserWarning, match="2 of 4 documents"):
        np.testing.assert_array_equal(model.transform(tokens), theta)


def test_columns_and_rows_that_cannot_be(texts):
    with pytest.raises(InputError, match=r"no column 'text', only \['body'\]: write column='body'"):
        tt.LDA().fit([{"body": text} for text in texts])
    with pytest.raises(InputError, match=r"no column 'bodi', only \['body'\]"):
        tt.LDA().fit([{"body": text} for text in texts], column="bodi")
    with pytest.raises(InputError, match="only tables and lists of dicts have columns"):
        tt.LDA().fit(texts, column="text")
    with pytest.raises(InputError, match="document 1 is no list of words"):
        tt.LDA().fit([["rain", "sun"], "rain and sun"])


def test_parties_bring_any_column(texts):
    rows = {"north": [{"body": text} for text in texts[:30]], "south": pd.DataFrame({"body": texts[30:]})}
    model = tt.Consensus(topics=3, rounds=2, sweeps=2).fit(rows, column="body")
    plain = tt.Consensus(topics=3, rounds=2, sweeps=2).fit({"north": texts[:30], "south": texts[30:]})
    np.testing.assert_array_equal(model.topic_word, plain.topic_word)


@pytest.mark.parametrize(
    ("estimator", "listed"),
    [(tt.LDA, LDAArguments), *((kind, NeuralArguments) for kind in (tt.ProdLDA, tt.CombinedTM, tt.ZeroShotTM))],
    ids=lambda value: value.__name__,
)
def test_editors_know_all_arguments(estimator, listed):
    assert set(typing.get_type_hints(listed)) == set(estimator().get_params())


def test_editors_know_all_options():
    fit = inspect.signature(tt.LDA.fit).parameters.values()
    assert set(FitOptions.__annotations__) == {option.name for option in fit if option.kind is option.KEYWORD_ONLY}
    assert set(typing.get_type_hints(compare.CompareOptions)) == set(PrevalenceSettings.model_fields) - {"model"}


def test_how_texts_are_cut_is_a_setting(texts):
    phrases = tt.TextOptions(ngrams=2)
    model = tt.LDA(text=phrases, **SMALL).fit(texts)
    assert model.options == phrases
    assert any("_" in word for word in model.vocabulary.words)
    assert clone(model).text is not None
    assert model.fit(texts, text=tt.TextOptions()).options == tt.TextOptions()


@pytest.mark.parametrize(
    ("key", "hint"),
    [("n_topics", "it is called 'topics' here"), ("max_iter", "it is called 'sweeps' here"),
     ("ngrams", r"it belongs to `text`: \[text\] in TOML, `text=tt.TextOptions\(ngrams=...\)` in Python"),
     ("nonsense", "remove it, or check its spelling")],
)  # fmt: skip
def test_federated_methods_hint_too(key, hint):
    with pytest.raises(ConfigError, match=f"unknown key '{key}': {hint}"):
        tt.Consensus(**{key: 5})
    with pytest.raises(ConfigError, match="unknown option 'random_state': it is called 'seed' here"):
        tt.Consensus().fit({"north": ["rain"]}, random_state=1)
    with pytest.raises(ConfigError, match=r"unknown key 'method\.n_topics': it is called 'topics' here"):
        RunSettings(method={"name": "consensus", "n_topics": 5})


def test_what_works_after_fit_is_listed(texts):
    model = tt.LDA(**SMALL)
    assert "fit" in dir(model)
    assert not {"top_words", "documents", "vocabulary_"} & set(dir(model))
    model.fit(texts)
    assert {"top_words", "documents", "save", "plot", "topics_"} <= set(dir(model))


def test_columns_of_counts_are_named_by_words_or_by_the_vectoriser_of_a_pipeline(texts, counts):
    names = CountVectorizer().fit(texts).get_feature_names_out()
    for given in (counts, counts.toarray()):
        model = tt.LDA(**SMALL).fit(given, feature_names=names)
        assert model.vocabulary.words == tuple(names)
        assert model == tt.LDA(**SMALL).fit(pd.DataFrame(counts.toarray(), columns=names))
        assert model.transform(counts).shape == (60, 3)
    pipeline = make_pipeline(CountVectorizer(), tt.LDA(**SMALL))
    pipeline.fit(texts, lda__feature_names=pipeline["countvectorizer"])
    assert pipeline["lda"] == model
    with pytest.raises(InputError, match="2 feature_names were given for 24 columns"):
        tt.LDA(**SMALL).fit(counts, feature_names=["a", "b"])
    with pytest.raises(InputError, match="two feature_names are the same"):
        tt.LDA(**SMALL).fit([[1, 2]], feature_names=["a", "a"])
    with pytest.raises(InputError, match="CountVectorizer is not fitted: give the very step"):
        tt.LDA(**SMALL).fit(counts, feature_names=CountVectorizer())
    with pytest.raises(InputError, match="feature_names are for matrices"):
        tt.LDA(**SMALL).fit(texts, feature_names=names)


@pytest.mark.filterwarnings("ignore::tertulia.models.display.FewDocumentsWarning")
def test_threads_and_columns_of_transform(texts):
    model = tt.LDA(**SMALL).fit(texts)
    frame = pd.DataFrame({"body": texts})
    features = tt.TopicFeatures(model)
    expected = model.transform(texts)
    for found in (
        model.transform(frame, column="body", n_jobs=2),
        features.transform(frame, column="body", n_jobs=2),
        model.topics_.transform(frame, column="body", n_jobs=2),
    ):
        np.testing.assert_array_equal(found, expected)
    assert model.perplexity(frame, column="body") == model.perplexity(texts)
    assert model.coherence(frame, column="body") == model.coherence(texts)
