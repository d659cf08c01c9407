"""Neural topic models on one machine (`pip install 'tertulia[neural]'`).

>>> import tertulia as tt
>>> model = tt.ProdLDA(topics=50).fit(texts)  # doctest: +SKIP
>>> model = tt.CombinedTM(topics=50, validation=0.25).fit(texts)  # doctest: +SKIP
>>> model.transform(["an unseen text"])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self, Unpack

import numpy as np
from pydantic import Field, model_validator

from tertulia.api.advice import warn_of_many_topics
from tertulia.api.estimators import Estimator
from tertulia.api.trainers import Trainer, TrainOptions, corpus_of, own_settings
from tertulia.corpus import Corpus
from tertulia.corpus.advice import warn_of_copies
from tertulia.corpus.counts import is_matrix
from tertulia.corpus.inputs import Documents
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.neural_settings import (
    Arithmetic,
    BatchSize,
    Betas,
    Dropout,
    Embedding,
    Epochs,
    Hidden,
    LearningRate,
    LearnPrior,
    NeuralPaper,
    NeuralVocabulary,
    NeuralWords,
    StopAfter,
    TopicAlpha,
    Validation,
    check_several_topics,
    sizes_of,
)
from tertulia.methods.common.settings import Threads, TopicCount
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.api.arguments import NeuralArguments
    from tertulia.models.neural.architecture import Kind


class NeuralTrainer(Trainer):
    """The settings of a neural topic model on one machine. The same seed gives the same topics."""

    kind: ClassVar[Kind]
    measured: ClassVar[tuple[str, str]] = ("epoch", "loss")
    threads: Threads = 1
    topics: TopicCount = 20
    embedding: Embedding = None
    batch_size: BatchSize = 64
    epochs: Epochs = None
    learning_rate: LearningRate = 0.002
    betas: Betas = (0.99, 0.99)
    validation: Validation = 0.0
    stop_after: StopAfter = 20
    vocabulary: NeuralWords = NeuralVocabulary()
    hidden: Hidden = (100, 100)
    dropout: Dropout = 0.2
    alpha: TopicAlpha = 1.0
    learn_prior: LearnPrior = True
    normalisation: Literal["batch", "layer"] = Field("batch", description="`batch`: BatchNorm; `layer`: LayerNorm")
    precision: Arithmetic = "float32"
    paper: NeuralPaper = Field(NeuralPaper(), description="details of papers that only a reproduction needs")

    @model_validator(mode="after")
    def _several_topics(self) -> Self:
        check_several_topics(self.topics)
        return self

    @property
    def steps(self) -> int | None:
        """Return the number of epochs; None if early stopping decides."""
        return self.epochs

    def train(self, documents: Documents, how: TrainOptions) -> Topics:
        """Train a model.

        With `validation`, that share of the documents is held out for early stopping. A corpus for models of sentences
        must have texts (`keep_text=True`) or vectors (`corpus.with_embeddings`).
        """
        if how.start is not None:
            raise ConfigError(f"{self.kind} cannot go on from a model: leave `start` out, or use `tt.LDA`")
        if self.kind != "prodlda" and is_matrix(documents):
            raise InputError(f"{self.kind} reads sentences, which a matrix of counts has not: give texts")
        return self._train(corpus_of(documents, self.vocabulary, how.text, keep_text=self.kind != "prodlda"), how)

    def _train(self, corpus: Corpus, how: TrainOptions) -> Topics:
        from tertulia.models.neural.architecture import architecture_of
        from tertulia.models.neural.bags import Bags, Schedule
        from tertulia.models.neural.embeddings import embeddings_of
        from tertulia.models.neural.encoder import Encoder
        from tertulia.models.neural.network import (
            Network,  # its import error names the missing extra
            use_threads,
        )
        from tertulia.models.neural.training import Pace, Progress, train_until

        seed = how.seed
        use_threads(self.threads)
        vectors = embeddings_of(corpus, self.embedding) if self.kind != "prodlda" else None
        bags, validation = Bags.of(corpus, vectors).split_validation(self.validation, seed)
        if bags.n_documents < 2 or (self.validation and validation.n_documents == 0):
            raise InputError(
                f"{bags.n_documents} documents with a word to train on, {validation.n_documents} to validate by: "
                "too few; give more, or check the column, the words and `validation`"
            )
        warn_of_copies(corpus)
        warn_of_many_topics(self.topics, corpus.n_documents)
        width, literal = 0 if vectors is None else vectors.shape[1], self.paper.literal_adapter
        sizes = sizes_of(self, len(corpus.vocabulary), width, self.normalisation, literal_adapter=literal)
        network = Network(self.kind, sizes, self.normalisation, self.precision)
        schedule = Schedule.over(bags.n_documents, self.batch_size, seed)
        end = train_until(
            network, Progress.initial(network, seed), bags,
            validation if self.validation else None, schedule,
            Pace(self.epochs, self.learning_rate, self.betas, self.stop_after, how.progress),
        )  # fmt: skip
        return Topics(
            network.topic_word(end.weights, end.statistics), corpus.vocabulary, np.full(self.topics, self.alpha), 0.0,
            weights=network.tokens_by_topic(end.weights, end.statistics, bags), options=corpus.options,
            provenance={
                "method": self.kind, "config": own_settings(self), "seed": seed,
                "epochs": round(end.moments.steps / schedule.batches) if end.moments else 0,
            },
            encoder=Encoder(architecture_of(network), end.weights, end.statistics, self.embedding),
        )  # fmt: skip


class ProdLDATrainer(NeuralTrainer):
    """ProdLDA's settings."""

    kind: ClassVar[Kind] = "prodlda"


class CombinedTMTrainer(NeuralTrainer):
    """CombinedTM's settings."""

    kind: ClassVar[Kind] = "combinedtm"


class ZeroShotTMTrainer(NeuralTrainer):
    """ZeroShotTM's settings."""

    kind: ClassVar[Kind] = "zeroshottm"


class ProdLDA(Estimator):
    """A neural topic model of bags of words (Srivastava and Sutton 2017)."""

    trainer: ClassVar[type[NeuralTrainer]] = ProdLDATrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[NeuralArguments]) -> None: ...


class CombinedTM(Estimator):
    """A neural topic model of words and sentence embeddings (Bianchi, Terragni and Hovy 2021)."""

    trainer: ClassVar[type[NeuralTrainer]] = CombinedTMTrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[NeuralArguments]) -> None: ...


class ZeroShotTM(Estimator):
    """A neural topic model that infers topics from sentence embeddings only, also in unseen languages."""

    trainer: ClassVar[type[NeuralTrainer]] = ZeroShotTMTrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[NeuralArguments]) -> None: ...
