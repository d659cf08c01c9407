"""Neural topic models on one machine: texts in, topics out (`pip install 'tertulia[neural]'`).

>>> import tertulia as tt
>>> model = tt.ProdLDA(topics=50).fit(texts)  # doctest: +SKIP
>>> model = tt.CombinedTM(topics=50, validation=0.25).fit(texts)  # doctest: +SKIP
>>> model.transform(["an unseen text"])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Unpack

import numpy as np
from pydantic import Field

from tertulia.api.advice import warn_of_many_topics
from tertulia.api.estimators import Estimator
from tertulia.api.training import How, Trainer, own_settings
from tertulia.corpus import Corpus
from tertulia.corpus.advice import warn_of_copies
from tertulia.corpus.counts import is_matrix
from tertulia.corpus.inputs import Documents
from tertulia.errors import ConfigError, InputError
from tertulia.methods.common.settings import Threads
from tertulia.methods.gfedntm.settings import NeuralSettings
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.api.arguments import NeuralArguments
    from tertulia.models.neural.sizes import Kind


class NeuralTrainer(NeuralSettings, Trainer, Threads):
    """The settings of a neural topic model on one machine. The same seed gives the same topics."""

    kind: ClassVar[Kind]
    normalisation: Literal["batch", "layer"] = Field("batch", description="`batch`: BatchNorm; `layer`: LayerNorm")

    measured: ClassVar[tuple[str, str]] = ("epoch", "loss")

    @property
    def steps(self) -> int | None:
        """The number of epochs, unless training finds out itself."""
        return self.epochs

    def train(self, documents: Documents, how: How) -> Topics:
        """Train anew.

        With `validation` that share of the documents takes no part in training and says when to stop. A corpus for
        models that read sentences must have its texts (`keep_text=True`) or vectors (`corpus.with_embeddings`).
        """
        if how.start is not None:
            raise ConfigError(f"{self.kind} cannot go on from a model: leave `start` out, or use `tt.LDA`")
        if self.kind != "prodlda" and is_matrix(documents):
            raise InputError(f"{self.kind} reads sentences, which a matrix of counts has not: give texts")
        return self._train(self._corpus(documents, how.text, keep_text=self.kind != "prodlda"), how)

    def _train(self, corpus: Corpus, how: How) -> Topics:
        from tertulia.models.neural.bags import Bags, Schedule
        from tertulia.models.neural.embeddings import embeddings_of
        from tertulia.models.neural.encoder import Encoder, architecture_of
        from tertulia.models.neural.network import Network  # says which extra is missing where torch is
        from tertulia.models.neural.threads import use_threads
        from tertulia.models.neural.training import Progress
        from tertulia.models.neural.validation import Pace, train_until

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
        sizes = self.sizes(len(corpus.vocabulary), 0 if vectors is None else vectors.shape[1], self.normalisation)
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
    """A neural topic model that infers from sentence embeddings alone, so also in languages it has not seen."""

    trainer: ClassVar[type[NeuralTrainer]] = ZeroShotTMTrainer
    if TYPE_CHECKING:

        def __init__(self, **given: Unpack[NeuralArguments]) -> None: ...
