"""What scikit-learn expects of an estimator, for trainers of topics; scikit-learn itself need not be installed.

Settings are the arguments, kept as they were given and checked when `fit` is called, as scikit-learn wants it. After
`fit` the topics are in `topics_`, and the estimator can all that `Topics` can: `transform`, `top_words`, `save`.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from tertulia._arrays import F64, Array
from tertulia.api.progress import Tick, showing
from tertulia.api.training import FitOptions, How, Trainer
from tertulia.corpus import TextOptions
from tertulia.corpus.counts import columns_of, is_matrix, names_of
from tertulia.corpus.inputs import Documents, settle, with_column
from tertulia.errors import ConfigError, NotFitted
from tertulia.methods.common.describe import document, other_name, section_of
from tertulia.models import Topics
from tertulia.models.reading import Topic

if TYPE_CHECKING:
    from sklearn.utils import Tags

OWN = {"random_state": 0, "n_jobs": None, "text": None}  # arguments besides the settings, by scikit-learn's names


class _Either:
    """A setting that a model has, too, such as alpha: before `fit` as it was given, then as it was learned."""

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
    """A trainer of topics with the manners of scikit-learn."""

    trainer: ClassVar[type[Trainer]]
    topics_: Topics

    if TYPE_CHECKING:

        def __init__(self, **given: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        """Give the class its arguments, and list them in its docstring."""
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
        keep.__doc__ = "Keep the settings, which are listed above; `fit` checks them."
        cls.__init__ = keep  # type: ignore[method-assign]
        for name in arguments.keys() & Topics.__dataclass_fields__.keys():
            setattr(cls, name, _Either(name))
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
    ) -> Self:
        """Train on texts, lists of tokens or of dicts, a table, a corpus, or a matrix of counts.

        Tables and dicts have their texts in a column `text`, or in the one that `column` names. Columns of a matrix are
        words, and none is pruned. `seed` comes before `random_state`, and `text`, how texts are cut into words, before
        the estimator's own. With `start` training continues from a model; `progress` is a function that is called after
        each sweep or epoch, with its number and its perplexity or loss; False: nothing is shown; True: a bar; None: a
        bar if there is a terminal. Labels `y` are not looked at.
        """
        documents = with_column(documents, column)
        first = start.topics_ if isinstance(start, Estimator) else start
        trainer = self._trainer()
        with showing(progress, type(self).__name__, *trainer.measured, trainer.steps) as tick:
            how = How(first, self._seed() if seed is None else seed, text or self.text, tick)
            self.topics_ = trainer.train(documents, how)
        if is_matrix(documents):
            self.n_features_in_ = len(self.topics_.vocabulary)
            if (names := names_of(documents)) is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def fit_transform(self, documents: Documents, y: object = None, **options: Unpack[FitOptions]) -> Any:
        """Train, then infer the topic shares of the same documents."""
        documents = settle(documents)  # they are read twice
        return self.fit(documents, y, **options).transform(documents, column=options.get("column"))

    def transform(self, documents: Documents, *, iterations: int = 100, column: str | None = None) -> Any:
        """Infer the topic shares [n, K], as `Topics.transform` does; `set_output` chooses in what they come."""
        topics, documents = self._fitted(), with_column(documents, column)
        self._check_columns(documents)
        theta = topics.transform(documents, iterations=iterations, n_jobs=1 if self.n_jobs is None else self.n_jobs)
        return _as(getattr(self, "_output", "default"), theta, topics.get_feature_names_out(), documents)

    def _check_columns(self, documents: Documents) -> None:
        """Columns must be those of `fit`, in their order."""
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
        """A number for `random_state`, which may be a generator, or None: another one each time."""
        state = self.random_state
        if isinstance(state, int | np.integer):
            return int(state)
        draw = np.random.default_rng() if state is None else state
        whole = getattr(draw, "integers", None) or getattr(draw, "randint", None)
        if whole is None:
            raise ConfigError(f"random_state = {state!r}: give a whole number, a generator of numpy, or None")
        return int(whole(2**31 - 1))

    # --- what is fitted -------------------------------------------------------------------------------------------

    def _fitted(self) -> Topics:
        if "topics_" not in self.__dict__:
            raise not_fitted(type(self).__name__)
        return self.topics_

    def __getattr__(self, name: str) -> Any:
        """Whatever else `Topics` has, once there are topics."""
        if name.startswith("__") or (not hasattr(Topics, name) and name not in Topics.__dataclass_fields__):
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return getattr(self._fitted(), name)

    def __sklearn_is_fitted__(self) -> bool:
        return "topics_" in self.__dict__

    def get_feature_names_out(self, input_features: object = None) -> Array:
        """Name the columns of `transform`'s result: topic0, topic1 and so on."""
        return self._fitted().get_feature_names_out()

    def __len__(self) -> int:
        return len(self._fitted())

    def __getitem__(self, number: int) -> Topic:
        """One topic, as of `Topics`."""
        return self._fitted()[number]

    def __bool__(self) -> bool:
        return True  # an estimator that is not fitted has no length

    def __eq__(self, other: object) -> bool:
        """Two that are fitted are equal if their topics are, bit for bit; so is one to its topics."""
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
        """The arguments as they were given."""
        return {name: self.__dict__[name] for name in sorted(_defaults(self.trainer) | OWN)}

    def set_params(self, **given: Any) -> Self:
        """Change arguments; what is fitted stays as it is until the next `fit`."""
        for name in given.keys() - self.get_params().keys():
            raise ConfigError(_unknown(type(self).__name__, name, list(self.get_params())))
        self.__dict__.update(given)
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have `transform` give a frame: "pandas", "polars", or "default" for an array."""
        if transform not in ("default", "pandas", "polars", None):
            raise ValueError(f"transform = {transform!r}: use 'default', 'pandas' or 'polars'")
        if transform is not None:
            self._output = transform
        return self

    def get_metadata_routing(self) -> Any:
        """Nothing but documents is asked for."""
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


_OWN_MEANING = """    random_state (int, a generator or None; default 0): of all that is drawn; None: another each time
    n_jobs (int or None; default None): threads, -1 for all cores; None: as `threads` says
    text (TextOptions or None; default None): how texts are cut into words, such as tt.TextOptions(ngrams=2)
"""


def _defaults(trainer: type[Trainer]) -> dict[str, Any]:
    """A trainer's settings; a section is None, which stands for its own defaults."""
    fields = trainer.model_fields.items()
    return {name: None if section_of(field) else field.get_default() for name, field in fields}


def _unknown(kind: str, name: str, known: list[str]) -> str:
    return f"unknown key '{name}': {other_name(name, known) or f'{kind} has ' + ', '.join(known)}"


def not_fitted(kind: str) -> NotFitted:
    """An error that is scikit-learn's too, where that is in use."""
    text = f"this {kind} has no topics yet: call `fit` first"
    if "sklearn" not in sys.modules:
        return NotFitted(text)
    from sklearn.exceptions import NotFittedError

    error: NotFitted = type("NotFitted", (NotFitted, NotFittedError), {})(text)
    return error


def _other_columns(expected: list[str], found: list[str]) -> str:
    """What scikit-learn says of it."""
    text = "The feature names should match those that were passed during fit.\n"
    if new := sorted(set(found) - set(expected)):
        text += "Feature names unseen at fit time:\n" + "".join(f"- {name}\n" for name in new[:5])
    if missing := sorted(set(expected) - set(found)):
        text += "Feature names seen at fit time, yet now missing:\n" + "".join(f"- {name}\n" for name in missing[:5])
    if not new and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    return text


def _as(output: str, theta: F64, names: Array, documents: Documents) -> Any:
    """Shares as an array, or as a frame."""
    if output == "default":
        return theta
    columns = {str(name): theta[:, k] for k, name in enumerate(names)}
    if output == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    import pandas as pd

    return pd.DataFrame(columns, index=getattr(documents, "index", None) if hasattr(documents, "iloc") else None)
