"""Topics that are clusters of document vectors: on one machine as an estimator, and over parties.

>>> import tertulia as tt
>>> model = tt.EmbeddingTopics(topics=20).fit(texts)  # doctest: +SKIP
>>> model = tt.EmbeddingTopics(topics=20, epsilon=3).fit({"north": texts, "south": more})  # doctest: +SKIP
>>> model.transform(["a new note"]), model.assign(["a new note"])  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from tertulia._arrays import F32, I64
from tertulia.api.estimators import Estimator
from tertulia.api.federated import Options, federate
from tertulia.api.parties import parties_of
from tertulia.api.trainers import FitOptions, Trainer, TrainOptions, own_settings, words_of
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.counts import from_counts, is_matrix
from tertulia.corpus.inputs import Documents, as_corpus, with_column
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.settings import AgreedWords, VocabularySettings
from tertulia.methods.embedding_topics.budget import check_verdict, verdict_on_corpora_or_none
from tertulia.methods.embedding_topics.settings import ClusterSettings, EmbeddingTopicsSettings
from tertulia.models import Topics
from tertulia.models.vectors.documents import GIVEN
from tertulia.models.vectors.joining import SAME, merge_models
from tertulia.runs.results import FederatedTopics

if TYPE_CHECKING:
    from tertulia.api.arguments import EmbeddingArguments

Embed = Callable[[list[str]], Any]  # from texts to vectors [n, d]
_ALL = "all"  # the one party of a run on one machine


class EmbeddingTrainer(ClusterSettings, Trainer):
    """The settings of clusters of documents, on one machine or over parties."""

    measured: ClassVar[tuple[str, str]] = ("round", "similarity")
    vocabulary: AgreedWords = VocabularySettings()

    @property
    def steps(self) -> int:
        """Return the number of rounds."""
        return self.moves + 2

    def settings(self) -> EmbeddingTopicsSettings:
        """Return the settings of the federated method."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return EmbeddingTopicsSettings(**given)

    def train(self, documents: Documents, how: TrainOptions) -> Topics:
        """Train on documents of one machine: a federation of one party, over its own words if there is no noise."""
        if how.start is not None:
            raise ConfigError(
                "EmbeddingTopics starts from words: leave `start` out, or join models by `EmbeddingTopics.merge_models`"
            )
        settings = self.settings()
        corpus = from_counts(documents) if is_matrix(documents) else as_corpus(
            None, documents, how.text, settings.keeps_text
        )  # fmt: skip
        if settings.epsilon is None and "vocabulary" not in self.model_fields_set:
            words = words_of(corpus, self.vocabulary)
            if not len(words):
                raise InputError(f"none of {corpus.n_documents} documents holds a word: check the column and the texts")
            settings = settings.replace(vocabulary={"mode": "public", "words": words.words})
        check_outlook(settings, {_ALL: corpus}, secure=False)
        observe = None if how.progress is None else _observer(how.progress)
        found = federate(settings, {_ALL: corpus}, seed=how.seed, heldout=0.0, progress=False, observe=observe)
        return Topics(
            found.topic_word, found.vocabulary, found.alpha, found.beta, found.weights, corpus.options,
            {
                "method": settings.name, "config": own_settings(self), "seed": how.seed,
                "embedding": found.provenance["embedding"],
            },
            found.encoder, names=found.names,
        )  # fmt: skip


def _observer(tick: Callable[[int, float], None]) -> Callable[..., None]:
    def observe(event: str, facts: Mapping[str, Any]) -> None:
        if event == "round":
            tick(int(facts.get("round", 0)), float(facts.get("similarity", 0.0)))

    return observe


class EmbeddingTopics(Estimator):
    """Topics that are clusters of document vectors; with an epsilon, private for whole documents or users.

    `fit(texts)` trains on one machine. `fit({"north": texts, "south": more})` trains over parties, with the options of
    `tertulia.federate`; `topics_` is then a `FederatedTopics`. `embedding` may be a function from texts to vectors.
    """

    trainer: ClassVar[type[Trainer]] = EmbeddingTrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[EmbeddingArguments]) -> None: ...

    def fit(self, documents: Documents, y: object = None, **options: Any) -> Self:
        """Fit the model to documents of one machine, or of several parties.

        Parameters
        ----------
        documents : texts, a table, a corpus; or a mapping from parties' names to these
            Of one table, `party` names the column that says whose a row is.
        y : object
            Ignored.
        options
            Of one machine: `seed`, `text`, `progress`, `column`, `feature_names`. Of parties: those of
            `tertulia.federate`, such as `federation={"secure": True}` and `directory`.

        Returns
        -------
        self

        """
        if not self._has_parties(documents, options):
            if strangers := sorted(options.keys() - FitOptions.__annotations__.keys()):
                raise ConfigError(
                    f"option '{strangers[0]}' goes with several parties: give a mapping from names to documents, or "
                    "a table with party='column'"
                )
            return super().fit(self._embedded(documents, options.get("text"), options.get("column")), y, **options)
        return self._fit_parties(documents, options)

    def _fit_parties(self, documents: Documents, options: dict[str, Any]) -> Self:
        trainer = self._trainer()
        assert isinstance(trainer, EmbeddingTrainer)
        party, column = options.pop("party", None), options.pop("column", None)
        text = options.get("text") or self.text
        parties = {
            name: self._embedded(with_column(own, column), text, None)
            for name, own in parties_of(documents, party).items()
        }
        settings, secure = trainer.settings(), bool(dict(options.get("federation") or {}).get("secure"))
        corpora = {name: as_corpus(name, own, text, settings.keeps_text, True) for name, own in parties.items()}
        check_outlook(settings, corpora, secure=secure)
        run: Options = {"seed": self._seed(), "heldout": 0.0, "text": text, **options}  # type: ignore[typeddict-item]
        found = federate(settings, corpora, **run)
        assert isinstance(found, FederatedTopics)
        self.topics_ = found
        return self

    @staticmethod
    def _has_parties(documents: Documents, options: Mapping[str, Any]) -> bool:
        if options.get("party") is not None:
            return True
        return isinstance(documents, Mapping) and (options.get("column") or "text") not in documents

    def _trainer(self) -> Trainer:
        if not callable(self.__dict__["embedding"]):
            return super()._trainer()
        function = self.__dict__["embedding"]
        self.__dict__["embedding"] = GIVEN
        try:
            return super()._trainer()
        finally:
            self.__dict__["embedding"] = function

    def _embedded(self, documents: Documents, text: TextOptions | None, column: str | None) -> Documents:
        """Give documents the vectors of the user's own function, if there is one."""
        function = self.__dict__["embedding"]
        if not callable(function):
            return documents
        corpus = as_corpus(None, with_column(documents, column), text or self.text, True)
        return with_vectors(corpus, function)

    def transform(
        self, documents: Documents, *, iterations: int = 100, column: str | None = None, n_jobs: int | None = None
    ) -> Any:
        """Infer topic shares from the cosines with the topics' centroids, shape (n_documents, n_topics)."""
        return super().transform(self._embedded(documents, None, column), iterations=iterations, n_jobs=n_jobs,
                                 column=None if callable(self.__dict__["embedding"]) else column)  # fmt: skip

    def assign(self, documents: Documents, *, column: str | None = None) -> I64:
        """Return the number of each document's topic; -1: it is like none of them."""
        own = callable(self.__dict__["embedding"])
        return self._fitted().assign(self._embedded(documents, None, column), column=None if own else column)

    @staticmethod
    def merge_models(models: Sequence[Topics | Estimator], *, min_similarity: float = SAME) -> Topics:
        """Join models that were trained apart: no document is needed, and nothing more leaves.

        Topics whose vectors have a cosine of `min_similarity` are one, with the words of all. The first model's topics
        keep their numbers, ids and names; others get new ids.
        """
        fitted = [model.topics_ if isinstance(model, Estimator) else model for model in models]
        return merge_models(fitted, min_similarity=min_similarity)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the fitted topics; after `fit` over parties, also `local`, `history` and others."""
        if name in FederatedTopics.__dataclass_fields__ or hasattr(FederatedTopics, name):
            found = self.__dict__.get("topics_")
            if isinstance(found, FederatedTopics):
                return getattr(found, name)
        return super().__getattr__(name)


def check_outlook(settings: EmbeddingTopicsSettings, corpora: Mapping[str, Corpus], *, secure: bool) -> None:
    """Raise `ConfigError` where no topic can be live: on one machine the number of documents is known beforehand."""
    found = verdict_on_corpora_or_none(settings, list(corpora.values()), 1.0 if secure else len(corpora) ** 0.5)
    check_verdict(found, left="nothing was spent")


def with_vectors(corpus: Corpus, function: Embed) -> Corpus:
    """Give a corpus with texts the vectors that a function makes of them."""
    if "text" not in corpus.table.columns:
        raise InputError("the embedding function reads texts, but the corpus keeps only words: use keep_text=True")
    vectors: F32 = np.asarray(function(corpus.table["text"].to_list()), np.float32)
    if vectors.ndim != 2 or len(vectors) != corpus.n_documents:
        raise InputError(
            f"the embedding function returned an array of shape {vectors.shape} for {corpus.n_documents} texts: "
            "it must return one row of numbers for each text"
        )
    return corpus.with_embeddings(vectors)
