"""`TopicFeatures`: scikit-learn's own checks, use alone and with other transformers, and its benefit."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import tertulia as tt
from tertulia.errors import ConfigError, InputError
from tertulia.models.topics import UnknownWordsWarning

pytest.importorskip("sklearn", reason="the extra `sklearn` is not installed")

from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.validation import validate_data

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = tuple(f"word{a}{b}" for a in LETTERS for b in LETTERS)[:200]
SMALL = tt.LDA(topics=3, sweeps=2, vocabulary={"mode": "public", "words": WORDS})
WEATHER = tt.Topics(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), tt.Vocabulary(("rain", "sun", "money")))
TEXTS = ["Rain, rain and sun!", "money", "sun and money"]


class OfCounts(tt.TopicFeatures):
    """The same for matrices, which is what scikit-learn's checks have: column j is how often word j occurs.

    So all checks apply; of the text transformer itself scikit-learn checks no more than that it can be cloned.
    """

    def fit(self, X, y=None):
        return super().fit(self._texts(X, reset=True), y)

    def transform(self, X):
        return super().transform(self._texts(X, reset=False))

    def _texts(self, X, reset):
        X = validate_data(self, X, reset=reset)
        counts = np.minimum(np.ceil(np.abs(X)), 9).astype(int)
        return [" ".join(word for word, n in zip(WORDS, row, strict=False) for _ in range(n)) for row in counts]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.allow_nan = False, True, False
        return tags


CHECKS = [
    pytest.param(estimator, check, id=f"{kind}-{check.func.__name__}")
    for kind, model in {
        "trained": tt.Topics(np.full((2, 200), 1 / 200), tt.Vocabulary(WORDS)),
        "trainer": SMALL,
    }.items()
    for estimator, check in estimator_checks_generator(OfCounts(model))
]


@pytest.mark.filterwarnings("ignore::tertulia.models.topics.UnknownWordsWarning")
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:Can't test estimator TopicFeatures which requires input")
def test_scikit_learns_checks_of_text_transformers():
    done = check_estimator(tt.TopicFeatures(SMALL), on_fail="raise")
    assert [check["status"] for check in done] == ["passed"]


def test_a_trained_model_is_used_as_it_is():
    features = tt.TopicFeatures(WEATHER)
    expected = WEATHER.transform(TEXTS)
    np.testing.assert_array_equal(features.transform(TEXTS), expected)  # without `fit`
    np.testing.assert_array_equal(features.fit_transform(TEXTS, ["a", "b", "c"]), expected)
    assert features.topics_ is WEATHER
    assert features.get_feature_names_out().tolist() == ["topic0", "topic1"]


@pytest.mark.parametrize(
    "documents",
    [
        tuple(TEXTS),
        np.array(TEXTS, dtype=object),
        np.array(TEXTS),
        pd.Series(TEXTS),
        pl.Series(TEXTS),
        pd.DataFrame({"text": TEXTS}),
        pl.DataFrame({"text": TEXTS}),
        tt.Corpus.from_texts(TEXTS),
    ],
    ids=lambda documents: f"{type(documents).__module__.partition('.')[0]}-{type(documents).__name__}",
)
def test_documents_come_as_scikit_learns_users_have_them(documents):
    np.testing.assert_array_equal(tt.TopicFeatures(WEATHER).fit_transform(documents), WEATHER.transform(TEXTS))


def test_a_trainer_is_trained_on_the_documents_of_fit(worded):
    texts = worded(0, 30) + worded(1, 30)
    trainer = tt.LDA(topics=3, sweeps=5)
    features = tt.TopicFeatures(trainer, seed=7)
    with pytest.raises(NotFittedError):
        features.transform(texts)
    shares = features.fit(texts).transform(texts)
    assert features.topics_ == trainer.fit(texts, seed=7)
    assert features.topics_ != trainer.fit(texts, seed=8)
    assert shares.shape == (60, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert tt.TopicFeatures().fit(texts).topics_.n_topics == tt.LDA().topics


def test_results_do_not_depend_on_threads(worded):
    texts = worded(0, 200)
    model = tt.LDA(topics=3, sweeps=5).fit(texts)
    alone = tt.TopicFeatures(model).transform(texts)
    np.testing.assert_array_equal(tt.TopicFeatures(model, n_jobs=2).transform(texts), alone)
    np.testing.assert_array_equal(tt.TopicFeatures(model, n_jobs=-1).transform(texts), alone)
    with pytest.raises(InputError, match="n_jobs = 0"):
        tt.TopicFeatures(model, n_jobs=0).transform(texts)


def test_copies_are_equal_and_fresh(worded):
    texts = worded(0, 30)
    features = tt.TopicFeatures(tt.LDA(topics=2, sweeps=3), n_jobs=2, seed=3).fit(texts)
    copy = clone(features)
    assert copy.get_params() == features.get_params()
    assert not hasattr(copy, "topics_")
    restored = pickle.loads(pickle.dumps(features))
    assert restored.topics_ == features.topics_
    np.testing.assert_array_equal(restored.transform(texts), features.transform(texts))
    np.testing.assert_array_equal(clone(tt.TopicFeatures(WEATHER)).transform(TEXTS), WEATHER.transform(TEXTS))


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_output_may_be_a_data_frame(kind, frame):
    found = tt.TopicFeatures(WEATHER).set_output(transform=kind).fit_transform(pd.Series(TEXTS, index=[7, 8, 9]))
    assert isinstance(found, frame)
    assert list(found.columns) == ["topic0", "topic1"]
    np.testing.assert_array_equal(found.to_numpy(), WEATHER.transform(TEXTS))
    if kind == "pandas":
        assert found.index.tolist() == [7, 8, 9]


def test_a_text_without_a_known_word_has_the_prior_mean():
    model = tt.Topics(WEATHER.topic_word, WEATHER.vocabulary, np.array([0.3, 0.1]))
    with pytest.warns(UnknownWordsWarning, match="4 of 5 documents hold no word"):
        shares = tt.TopicFeatures(model).fit_transform(["rain", "", "snow", None, float("nan")])
    np.testing.assert_allclose(shares[1:], [[0.75, 0.25]] * 4)
    assert tt.TopicFeatures(model).transform([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("one text", r"one string: write \[text\]"),
        (np.ones((3, 2)), r"shape \(3, 2\): give a list of n texts"),
        (np.array([TEXTS]).T, r"shape \(3, 1\): give a list of n texts"),
        (sparse.csr_matrix(np.eye(2)), r"shape \(2, 2\)"),
        ([["rain"], "sun"], "document 1 is no list of words"),
        ([1, 2], "text 0 is int, not str"),
        (pd.DataFrame({"body": TEXTS}), r"no column 'text', only \['body'\]"),
        (None, "documents are None: give a list of texts"),
        (7, "documents are int: give a list of texts"),
    ],
)
def test_bad_documents_are_named(documents, message):
    with pytest.raises(InputError, match=message):
        tt.TopicFeatures(WEATHER).fit(documents).transform(documents)


@pytest.mark.parametrize("model", [tt.FTM(topics=2), tt.LDA, "topics", 20, TfidfVectorizer()])
def test_bad_models_are_named(model):
    with pytest.raises(ConfigError, match=r"takes topics that are trained, or a trainer such as tt\.LDA"):
        tt.TopicFeatures(model).fit(TEXTS)


def test_without_scikit_learn_the_name_is_there_and_says_what_to_install():
    code = """
import sys
from pathlib import Path
sys.modules["sklearn"] = sys.modules["sklearn.base"] = None
from tertulia import *
try:
    TopicFeatures()
except TertuliaError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "TopicFeatures needs scikit-learn: pip install 'tertulia[sklearn]'\n"


def test_importing_the_package_does_not_import_scikit_learn():
    code = "import sys, tertulia; tertulia.LDA; print('sklearn' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def planted(seed, n):
    """Make short documents of two alternating classes with a hundred words each: two documents share hardly any."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 2
    return [" ".join(np.array(WORDS)[100 * label + rng.integers(100, size=8)]) for label in classes], classes


@pytest.fixture(scope="module")
def federated():
    """Train topics on unlabelled documents of two parties."""
    return tt.FTM(topics=2, rounds=2, sweeps=30).fit({"north": planted(1, 300)[0], "south": planted(2, 300)[0]}, seed=1)


def test_federated_topics_separate_classes_that_few_labels_do_not(federated):
    (texts, classes), (asked, truth) = planted(3, 4), planted(4, 300)
    words = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, classes).score(asked, truth)
    topics = make_pipeline(tt.TopicFeatures(federated), LogisticRegression()).fit(texts, classes).score(asked, truth)
    both = FeatureUnion([("words", TfidfVectorizer()), ("topics", tt.TopicFeatures(federated))])
    union = make_pipeline(both, LinearSVC()).fit(texts, classes)
    assert words < 0.9
    assert topics > 0.97
    assert union.score(asked, truth) > words + 0.05
    names = both.get_feature_names_out()
    assert names[-1] == f"topics__topic{federated.n_topics - 1}"
    assert names[0].startswith("words__word")


def test_search_over_models_and_columns_of_a_table(federated):
    texts, classes = planted(5, 60)
    pipeline = make_pipeline(tt.TopicFeatures(federated), LogisticRegression())
    assert cross_val_score(pipeline, texts, classes, cv=3).mean() > 0.95
    one = tt.LDA(topics=1, sweeps=3, vocabulary={"mode": "public", "words": WORDS})
    search = GridSearchCV(pipeline, {"topicfeatures__model": [one, federated]}, cv=3).fit(texts, classes)
    assert search.best_params_["topicfeatures__model"] is federated
    assert search.cv_results_["mean_test_score"][0] < 0.7
    table = pd.DataFrame({"note": texts, "length": [len(text) for text in texts]})
    chosen = ColumnTransformer([("topics", tt.TopicFeatures(federated), "note")], remainder="passthrough")
    found = chosen.set_output(transform="pandas").fit_transform(table)
    assert found.columns[0] == "topics__topic0"
    assert found.shape == (60, federated.n_topics + 1)


def test_the_page_s_own_ten_lines_run():
    page = (Path(__file__).parents[3] / "docs" / "classification.md").read_text(encoding="utf-8")
    lines = re.search(r"```python\n(import tertulia.*?)```", page, re.S)[1]
    assert len([line for line in lines.splitlines() if line.strip()]) <= 10
    (texts, labels), (new_texts, truth) = planted(7, 8), planted(8, 100)
    names = {"north_texts": planted(5, 200)[0], "south_texts": planted(6, 200)[0]}
    names |= {"texts": texts, "labels": labels, "new_texts": new_texts}
    exec(lines, names)
    assert np.mean(names["found"] == truth) > 0.95
