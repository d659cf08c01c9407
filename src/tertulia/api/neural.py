"""Neural topic models on one machine: texts in, topics out (`pip install 'tertulia[neural]'`).

>>> import tertulia as tt
>>> model = tt.ProdLDA(topics=50).fit(texts)  # doctest: +SKIP
>>> model = tt.CombinedTM(topics=50, validation=0.25).fit(texts)  # doctest: +SKIP
>>> model.transform(["an unseen text"])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from tertulia.api.federated import choose_words
from tertulia.corpus import Corpus, TextOptions
from tertulia.corpus.inputs import Documents, as_corpus
from tertulia.errors import InputError
from tertulia.methods.common.settings import Explained, Threads
from tertulia.methods.gfedntm.settings import NeuralSettings
from tertulia.models import Topics

if TYPE_CHECKING:
    from tertulia.models.neural.sizes import Kind


class NeuralTrainer(Explained, Threads, NeuralSettings):
    """The settings of a trainer, and `fit`. The same seed gives the same topics."""

    kind: ClassVar[Kind]
    normalisation: Literal["batch", "layer"] = Field("batch", description="`batch`: BatchNorm; `layer`: LayerNorm")

    def fit(self, documents: Documents, *, seed: int = 0, text: TextOptions | None = None) -> Topics:
        """Train on a list of texts, a data frame with a column `text`, or a corpus.

        With `validation` that share of the documents takes no part in training and says when to stop. A corpus for
        models that read sentences must have its texts (`keep_text=True`) or vectors (`corpus.with_embeddings`).
        """
        sentences = self.kind != "prodlda"
        corpus = as_corpus(None, documents, text, keep_text=sentences)
        return self._train(corpus.encode(choose_words(corpus, self.vocabulary)), seed)

    def _train(self, corpus: Corpus, seed: int) -> Topics:
        from tertulia.models.neural.bags import Bags, Schedule
        from tertulia.models.neural.embeddings import embeddings_of
        from tertulia.models.neural.encoder import Encoder, architecture_of
        from tertulia.models.neural.network import Network  # says which extra is missing where torch is
        from tertulia.models.neural.threads import use_threads
        from tertulia.models.neural.training import Progress
        from tertulia.models.neural.validation import Pace, train_until

        use_threads(self.threads)
        vectors = embeddings_of(corpus, self.embedding) if self.kind != "prodlda" else None
        bags, validation = Bags.of(corpus, vectors).split_validation(self.validation, seed)
        if bags.n_documents < 2 or (self.validation and validation.n_documents == 0):
            raise InputError(
                f"{bags.n_documents} documents with a word to train on, {validation.n_documents} to validate by: "
                "too few; give more, or check the column, the words and `validation`"
            )
        sizes = self.sizes(len(corpus.vocabulary), 0 if vectors is None else vectors.shape[1], self.normalisation)
        network = Network(self.kind, sizes, self.normalisation, self.precision)
        schedule = Schedule.over(bags.n_documents, self.batch_size, seed)
        end = train_until(
            network, Progress.initial(network, seed), bags,
            validation if self.validation else None, schedule,
            Pace(self.epochs, self.learning_rate, self.betas, self.stop_after),
        )  # fmt: skip
        return Topics(
            network.topic_word(end.weights, end.statistics), corpus.vocabulary, np.full(self.topics, self.alpha), 0.0,
            weights=network.tokens_by_topic(end.weights, end.statistics, bags), options=corpus.options,
            provenance={
                "method": self.kind, "config": self.model_dump(exclude={"vocabulary"}), "seed": seed,
                "epochs": round(end.moments.steps / schedule.batches) if end.moments else 0,
            },
            encoder=Encoder(architecture_of(network), end.weights, end.statistics, self.embedding),
        )  # fmt: skip


class ProdLDA(NeuralTrainer):
    """A neural topic model of bags of words (Srivastava and Sutton 2017)."""

    kind: ClassVar[Kind] = "prodlda"


class CombinedTM(NeuralTrainer):
    """A neural topic model of words and sentence embeddings (Bianchi, Terragni and Hovy 2021)."""

    kind: ClassVar[Kind] = "combinedtm"


class ZeroShotTM(NeuralTrainer):
    """A neural topic model that infers from sentence embeddings alone, so also in languages it has not seen."""

    kind: ClassVar[Kind] = "zeroshottm"
