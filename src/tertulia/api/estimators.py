"""Base class of estimators: the interface of scikit-learn for trainers. scikit-learn need not be installed.

The arguments are the trainer's settings; they are stored as given, and validated by `fit`, as in scikit-learn. After
`fit` the topics are in `topics_`, and the estimator has all methods of `Topics`: `transform`, `top_words`, `save`.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.api.progress import Tick, show_progress
from tertulia.api.trainers import FitOptions, Trainer, TrainOptions
from tertulia.corpus import TextOptions
from tertulia.corpus.counts import columns_of, is_matrix, names_of, with_names
from tertulia.corpus.inputs import Documents, materialise, with_column
from tertulia.errors import ConfigError, NotFitted
from tertulia.methods.common.descriptions import document, other_name, section_of
from tertulia.models import Topics
from tertulia.models.display import Topic

if TYPE_CHECKING:
    from sklearn.utils import Tags

OWN = {"random_state": 0, "n_jobs": None, "text": None}  # arguments besides the settings, named as in scikit-learn


class _LearnedSetting:
    """A setting that a model has, too, such as alpha: the given value before `fit`, the learned one after."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, estimator: Estimator | None, kind: type) -> Any:
        if estimator is None:
            return self
        fitted = estimator.__dict__.get("topics_")
        return estimator.__dict__[self._name] if fitted is None else getattr(fitted, self._name)

    def __set__(self, estimator: Estimator, value: Any) -> None:
        estimator.__dict__[self._name] = value


class Estimator:
    """Base class of estimators in scikit-learn's sense.

    Attributes
    ----------
    topics_ : Topics
        The fitted topics.

    """

    trainer: ClassVar[type[Trainer]]
    topics_: Topics

    if TYPE_CHECKING:

        def __init__(self, **given: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        """Add the arguments to the signature and the docstring of the class."""
        arguments = _defaults(cls.trainer) | OWN

        def keep(self: Estimator, **given: Any) -> None:
            for name in given.keys() - arguments.keys():
                raise ConfigError(_unknown(cls.__name__, name, list(arguments)))
            self.__dict__.update(arguments | given)

        keyword = inspect.Parameter.KEYWORD_ONLY
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        keywords = [inspect.Parameter(name, keyword, default=value) for name, value in arguments.items()]
        keep.__signature__ = inspect.Signature([own, *keywords])  # type: ignore[attr-defined]
        keep.__name__, keep.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
        keep.__doc__ = "Store the settings listed above; `fit` validates them."
        cls.__init__ = keep  # type: ignore[method-assign]
        for name in arguments.keys() & Topics.__dataclass_fields__.keys():
            setattr(cls, name, _LearnedSetting(name))
        cls.__doc__ = document(cls.trainer, inspect.cleandoc(cls.__dict__.get("__doc__") or "")) + _OWN_MEANING

    # --- training -------------------------------------------------------------------------------------------------

    def fit(
        self,
        documents: Documents,
        y: object = None,
        *,
        start: Topics | Estimator | None = None,
        seed: int | None = None,
        text: TextOptions | None = None,
        progress: bool | Tick | None = None,
        column: str | None = None,
        feature_names: Any = None,
    ) -> Self:
        """Fit the model to documents.

        Parameters
        ----------
        documents : texts, lists of tokens or of dicts, a table, a corpus, or a matrix of counts
            Columns of a matrix are words, and none is pruned.
        y : object
            Ignored.
        start : Topics or Estimator, optional
            Model to continue.
        seed : int, optional
            Seed, instead of `random_state`.
        text : TextOptions, optional
            Tokenisation, instead of the estimator's `text`.
        progress : bool or callable, optional
            Called after each sweep or epoch with its number and its perplexity or loss. False: show nothing; True: show
            a bar; None: show a bar on a terminal.
        column : str, default "text"
            Column of a table, or key of dicts, that has the texts.
        feature_names : sequence of str, or a fitted vectoriser, optional
            Words that the columns of a matrix count; in a pipeline, its step that counts them.

        Returns
        -------
        self

        """
        documents = with_names(with_column(documents, column), feature_names)
        first = start.topics_ if isinstance(start, Estimator) else start
        trainer = self._trainer()
        with show_progress(progress, type(self).__name__, *trainer.measured, trainer.steps) as tick:
            how = TrainOptions(first, self._seed() if seed is None else seed, text or self.text, tick)
            self.topics_ = trainer.train(documents, how)
        if is_matrix(documents):
            self.n_features_in_ = len(self.topics_.vocabulary)
            if (names := names_of(documents)) is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def fit_transform(self, documents: Documents, y: object = None, **options: Unpack[FitOptions]) -> Any:
        """Fit the model, then infer the topic shares of the same documents."""
        documents = materialise(documents)  # because they are read twice
        return self.fit(documents, y, **options).transform(documents, column=options.get("column"))

    def transform(
        self, documents: Documents, *, iterations: int = 100, column: str | None = None, n_jobs: int | None = None
    ) -> Any:
        """Infer topic shares, shape (n_documents, n_topics), as `Topics.transform` does; see `set_output`.

        `n_jobs` threads are used instead of the estimator's own `n_jobs`.
        """
        topics, documents = self._fitted(), with_column(documents, column)
        self._check_columns(documents)
        threads = self.n_jobs if n_jobs is None else n_jobs
        theta = topics.transform(documents, iterations=iterations, n_jobs=1 if threads is None else threads)
        return _as(getattr(self, "_output", "default"), theta, topics.get_feature_names_out(), documents)

    def _check_columns(self, documents: Documents) -> None:
        """Raise an error if the columns of a matrix differ from those of `fit`."""
        if not is_matrix(documents):
            return
        columns, known = columns_of(documents), len(self.topics_.vocabulary)
        if columns is not None and columns != known:
            raise ValueError(
                f"X has {columns} features, but {type(self).__name__} is expecting {known} features as input"
            )
        expected, found = self.__dict__.get("feature_names_in_"), names_of(documents)
        if expected is not None and found is not None and list(expected) != list(found):
            raise ValueError(_other_columns(list(expected), list(found)))

    def _trainer(self) -> Trainer:
        usual = _defaults(self.trainer)
        changed = {name: self.__dict__[name] for name in usual if self.__dict__[name] is not usual[name]}
        if self.n_jobs is not None:
            from tertulia.kernels.core.parallel import threads_for

            changed["threads"] = threads_for(self.n_jobs)
        return self.trainer(**changed)

    def _seed(self) -> int:
        """Draw a seed from `random_state`: a number, a generator, or None for a new seed each time."""
        state = self.random_state
        if isinstance(state, int | np.integer):
            return int(state)
        draw = np.random.default_rng() if state is None else state
        whole = getattr(draw, "integers", None) or getattr(draw, "randint", None)
        if whole is None:
            raise ConfigError(f"random_state = {state!r}: give a whole number, a generator of numpy, or None")
        return int(whole(2**31 - 1))

    # --- fitted topics -------------------------------------------------------------------------------------------

    def _fitted(self) -> Topics:
        if "topics_" not in self.__dict__:
            raise not_fitted(type(self).__name__)
        return self.topics_

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fitted topics."""
        if name.startswith("__") or (not hasattr(Topics, name) and name not in Topics.__dataclass_fields__):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return getattr(self._fitted(), name)

    def __dir__(self) -> list[str]:
        """List what works now: before `fit` without the methods of topics."""
        own = set(super().__dir__())
        return sorted(own | set(dir(self.topics_)) if "topics_" in self.__dict__ else own)

    def __sklearn_is_fitted__(self) -> bool:
        return "topics_" in self.__dict__

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Return the names of the columns of `transform`: topic0, topic1 and so on."""
        return self._fitted().get_feature_names_out()

    def __len__(self) -> int:
        return len(self._fitted())

    def __getitem__(self, number: int) -> Topic:
        """Return one topic, as `Topics` does."""
        return self._fitted()[number]

    def __bool__(self) -> bool:
        return True  # an unfitted estimator has no length

    def __eq__(self, other: object) -> bool:
        """Compare fitted estimators, or an estimator and topics, by their topics, bit for bit."""
        mine = self.__dict__.get("topics_")
        its = other.__dict__.get("topics_") if isinstance(other, Estimator) else other
        if mine is not None or isinstance(its, Topics):
            return isinstance(its, Topics) and its == mine
        return type(self) is type(other) and isinstance(other, Estimator) and self.get_params() == other.get_params()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        changed = {n: v for n, v in self.get_params().items() if v is not (_defaults(self.trainer) | OWN)[n]}
        settings = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        own = f"{type(self).__name__}({settings})"
        return f"{own}\n{self.topics_!r}" if self.__sklearn_is_fitted__() else own

    # --- scikit-learn ---------------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments as they were given."""
        return {name: self.__dict__[name] for name in sorted(_defaults(self.trainer) | OWN)}

    def set_params(self, **given: Any) -> Self:
        """Change arguments; the fitted topics stay until the next `fit`."""
        for name in given.keys() - self.get_params().keys():
            raise ConfigError(_unknown(type(self).__name__, name, list(self.get_params())))
        self.__dict__.update(given)
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the output of `transform`: "pandas", "polars", or "default" for an array."""
        if transform not in ("default", "pandas", "polars", None):
            raise ValueError(f"transform = {transform!r}: use 'default', 'pandas' or 'polars'")
        if transform is not None:
            self._output = transform
        return self

    def get_metadata_routing(self) -> Any:
        """Return an empty request: no metadata is used."""
        from sklearn.utils.metadata_routing import MetadataRequest

        return MetadataRequest(owner=type(self).__name__)

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64"]),
            input_tags=InputTags(sparse=True, positive_only=True, string=False),
        )


_OWN_MEANING = """    random_state (int, a generator or None; default 0): seed; None: a new one each time
    n_jobs (int or None; default None): number of threads, -1 for all cores; None: `threads`
    text (TextOptions or None; default None): tokenisation, such as tt.TextOptions(ngrams=2)
"""


def _defaults(trainer: type[Trainer]) -> dict[str, Any]:
    """Return the defaults of a trainer's settings; a section or a table is None, which means its own defaults."""
    fields = trainer.model_fields.items()
    defaults = {name: None if section_of(field) else field.get_default() for name, field in fields}
    return {name: None if isinstance(value, dict) else value for name, value in defaults.items()}


def _unknown(kind: str, name: str, known: list[str]) -> str:
    return f"unknown key '{name}': {other_name(name, known) or f'{kind} has ' + ', '.join(known)}"


def not_fitted(kind: str) -> NotFitted:
    """Build an error that is also scikit-learn's `NotFittedError` if scikit-learn is in use."""
    text = f"this {kind} has no topics yet: call `fit` first"
    if "sklearn" not in sys.modules:
        return NotFitted(text)
    from sklearn.exceptions import NotFittedError

    error: NotFitted = type("NotFitted", (NotFitted, NotFittedError), {})(text)
    return error


def _other_columns(expected: list[str], found: list[str]) -> str:
    """Describe other columns as scikit-learn does."""
    text = "The feature names should match those that were passed during fit.\n"
    if new := sorted(set(found) - set(expected)):
        text += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in new[:5])
    if missing := sorted(set(expected) - set(found)):
        text += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {name}\n" for name in missing[:5])
    if not new and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    return text


def _as(output: str, theta: F64, names: Array, documents: Documents) -> Any:
    """Return shares as an array, or as a data frame."""
    if output == "default":
        return theta
    columns = {str(name): theta[:, k] for k, name in enumerate(names)}
    if output == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    import pandas as pd

    return pd.DataFrame(columns, index=getattr(documents, "index", None) if hasattr(documents, "iloc") else None)
