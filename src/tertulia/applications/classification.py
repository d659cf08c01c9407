"""Topic shares as features of a classifier in scikit-learn (`pip install 'tertulia[sklearn]'`).

iFTM (Jiang, Tong, Song et al., TIST 2021) adds 100 shares to the word features of a support vector machine; FedLDA
(Wang, Tong and Shi, AAAI 2020) uses them in a logistic regression.

>>> import tertulia as tt
>>> topics = tt.FTM(topics=50).fit({"north": texts, "south": more_texts})  # doctest: +SKIP
>>> make_pipeline(tt.TopicFeatures(topics), LogisticRegression()).fit(known, labels).predict(asked)  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tertulia._arrays import F64, Array
from tertulia.api.estimators import Estimator
from tertulia.api.lda import LDA
from tertulia.corpus import Corpus
from tertulia.corpus.inputs import Documents, with_column
from tertulia.errors import ConfigError, InputError
from tertulia.models import Topics

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import Tags
else:
    try:
        from sklearn.base import BaseEstimator, TransformerMixin
    except ModuleNotFoundError:  # so that `from tertulia import *` and `help` work without scikit-learn

        class BaseEstimator:
            """Stands where scikit-learn's would."""

            def __new__(cls, *_: Any, **__: Any) -> Any:
                """Raise `InputError` that names the missing package."""
                raise InputError(f"{cls.__name__} needs scikit-learn: pip install 'tertulia[sklearn]'")

        class TransformerMixin:
            """Stands where scikit-learn's would."""


class TopicFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A scikit-learn transformer: documents in, their topic shares [n, K] out.

    It works alone, in a `Pipeline`, or beside TF-IDF in a `FeatureUnion`, and with `clone`, `set_output` and grid
    search, also over models: `{"topicfeatures__model": [tt.LDA(topics=20), tt.LDA(topics=50)]}`.

    Parameters
    ----------
    model : Topics, or a trainer such as `tt.LDA(topics=50)`; None: `tt.LDA()`
        A trained model is used as it is: `fit` learns nothing and need not be called. `fit` trains a trainer (`LDA`,
        `ProdLDA`, `CombinedTM`, `ZeroShotTM`) on its documents.
    n_jobs : int, default None
        Threads that infer shares, -1: all cores; None: one. Shares do not depend on it.
    seed : int, default 0
        The seed of a trainer.

    Attributes
    ----------
    topics_ : Topics
        The model in use.

    Documents are a list, an array or a column of texts, a data frame with a column `text`, or a corpus. A text without
    a known word, or an empty or missing one, gets the prior mean, and a warning gives the number of these.

    >>> import numpy as np
    >>> from tertulia import Topics, Vocabulary
    >>> topics = Topics(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]), Vocabulary(("rain", "sun", "money")))
    >>> TopicFeatures(topics).transform(["Rain, rain and sun!"]).round(2)
    array([[0.96, 0.04]])

    """

    def __init__(self, model: Topics | Estimator | None = None, *, n_jobs: int | None = None, seed: int = 0) -> None:
        self.model = model
        self.n_jobs = n_jobs
        self.seed = seed

    def fit(self, documents: Documents, y: object = None, *, column: str | None = None) -> Self:
        """Train the model, unless it is trained already; labels are ignored."""
        checked = with_column(_check_documents(documents), column)
        trained = self._trained_or_none()
        self.topics_ = _trainer(self.model).fit(checked, seed=self.seed).topics_ if trained is None else trained
        return self

    def transform(self, documents: Documents, *, column: str | None = None, n_jobs: int | None = None) -> F64:
        """Infer the topic shares [n, K]: rows sum to 1, in the order of the documents."""
        topics, checked = self._topics_in_use(), _check_documents(documents)
        threads = self.n_jobs if n_jobs is None else n_jobs
        return topics.transform(checked, n_jobs=1 if threads is None else threads, column=column)

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Name the columns: topic0, topic1 and so on."""
        return self._topics_in_use().get_feature_names_out()

    def _topics_in_use(self) -> Topics:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        topics = self.topics_ if hasattr(self, "topics_") else self._trained_or_none()
        assert isinstance(topics, Topics)
        return topics

    def _trained_or_none(self) -> Topics | None:
        """Return the topics of the given model or of a fitted estimator; None if it is not trained."""
        given = self.model.__dict__.get("topics_") if isinstance(self.model, Estimator) else self.model
        return given if isinstance(given, Topics) else None

    def __sklearn_clone__(self) -> Self:
        """Make an unfitted copy; a given trained model stays."""
        from sklearn.base import clone

        model = self.model if self._trained_or_none() is not None else clone(self.model, safe=False)
        return type(self)(model, n_jobs=self.n_jobs, seed=self.seed)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "topics_") or self._trained_or_none() is not None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array, tags.input_tags.allow_nan = True, False, True
        tags.requires_fit = self._trained_or_none() is None
        return tags


def _trainer(model: object) -> Estimator:
    """Return a new trainer, so that the given one stays unchanged."""
    if model is None:
        return LDA()
    if isinstance(model, Estimator):
        return type(model)(**model.get_params())
    kind = model.__name__ if isinstance(model, type) else type(model).__name__
    raise ConfigError(
        f"model = {kind}: TopicFeatures takes topics that are trained, or a trainer such as tt.LDA(topics=50); "
        "a federated method needs its parties: hand over what its `fit` gives"
    )


def _check_documents(documents: Documents) -> Documents:
    """Raise `InputError` for matrices of numbers, which users of scikit-learn may give."""
    if not (isinstance(documents, Corpus) or hasattr(documents, "__iter__")):
        kind = "None" if documents is None else type(documents).__name__
        raise InputError(f"documents are {kind}: give a list of texts, a data frame with a column 'text', or a corpus")
    if not hasattr(documents, "columns") and getattr(documents, "ndim", 1) != 1:
        raise InputError(
            f"documents of shape {documents.shape}: give a list of n texts; of a table, its column of texts"
        )
    return documents
