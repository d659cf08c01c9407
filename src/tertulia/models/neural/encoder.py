"""The encoder of a neural model, a part of `Topics`: it infers topic shares in one pass and is saved with the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np

from tertulia._arrays import F64, Array, Bool
from tertulia._kinds import fits
from tertulia.corpus import Corpus
from tertulia.errors import FormatError, InputError
from tertulia.models.neural.architecture import Kind, network_of

if TYPE_CHECKING:
    from tertulia.models.neural.network import Network

KINDS = get_args(Kind)


@dataclass(frozen=True, eq=False)
class Encoder:
    """A trained network; torch is imported only for inference."""

    architecture: dict[str, Any]  # the argument of `network_of`
    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running means and variances of the norms
    embedding: str | None = None  # the model of sentence embeddings; None: the default model

    mixes: ClassVar[bool] = True  # documents are mixtures of topics

    @property
    def network(self) -> Network:
        """The network that the weights belong to."""
        return network_of(self.architecture)

    @property
    def reads_sentences(self) -> bool:
        """Whether the encoder reads sentence embeddings."""
        return bool(self.architecture["kind"] != "prodlda")

    def check_sizes(self, topics: int, words: int) -> None:
        """Raise `FormatError` unless this can be the encoder of a model of this size."""
        sizes = self.architecture.get("sizes") if isinstance(self.architecture, dict) else None
        if not isinstance(sizes, dict) or self.architecture.get("kind") not in KINDS:
            raise FormatError("this is no neural model that we know: save it again, or upgrade")
        if (sizes.get("topics"), sizes.get("words")) != (topics, words):
            raise FormatError(f"the encoder is not for {topics} topics and {words} words: save the model again")
        if not fits(self.embedding, str | None):
            raise FormatError("the encoder's embedding is no name: save the model again")
        for array, shape in ((self.weights, (self.weights.size,)), (self.statistics, (2, 2 * topics + words))):
            if array.shape != shape or array.dtype.kind != "f" or not np.all(np.isfinite(array)):
                raise FormatError("the encoder's numbers are damaged: save the model again")

    def theta(self, corpus: Corpus) -> F64:
        """Infer the topic shares [D, K] of a corpus over the model's vocabulary."""
        from tertulia.models.neural.bags import Bags
        from tertulia.models.neural.embeddings import embeddings_of

        network = self.network
        if self.weights.size != sum(prod(shape) for shape in network.shapes.values()):
            raise FormatError("the encoder's weights do not fit its architecture: save the model again")
        vectors = embeddings_of(corpus, self.embedding) if self.reads_sentences else None
        if vectors is not None and vectors.shape[1] != network.sizes.embedding:
            raise InputError(
                f"the model reads embeddings of {network.sizes.embedding} numbers, these have {vectors.shape[1]}: "
                "give documents vectors from where the model's came (`corpus.with_embeddings`)"
            )
        bags = Bags.of(corpus, vectors, wordless=True)
        theta = network.infer(self.weights, self.statistics, bags)
        theta[self.silent(corpus)] = network.prior_theta(self.weights)
        return theta

    def silent(self, corpus: Corpus) -> Bool:
        """Return which documents [D] hold nothing to infer from: no known word, and no sentence if it reads those."""
        silent: Bool = corpus.lengths == 0
        if self.reads_sentences and "embedding" in corpus.table.columns:
            silent &= ~corpus.table["embedding"].to_numpy().any(axis=1)
        elif self.reads_sentences and "text" in corpus.table.columns:
            silent &= (corpus.table["text"].str.strip_chars() == "").to_numpy()
        return silent

    def __eq__(self, other: object) -> bool:
        """Compare bit for bit."""
        return isinstance(other, Encoder) and all(
            (a.architecture, a.embedding, a.weights.tobytes(), a.statistics.tobytes())
            == (b.architecture, b.embedding, b.weights.tobytes(), b.statistics.tobytes())
            for a, b in [(self, other)]
        )

    def __hash__(self) -> int:
        return hash(self.weights.tobytes())
