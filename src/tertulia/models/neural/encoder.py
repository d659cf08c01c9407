"""The encoder of a neural model, as part of `Topics`: it infers topic shares in one pass, and is saved with them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, get_args

from tertulia._arrays import F64, Array, Bool
from tertulia.corpus import Corpus
from tertulia.errors import FormatError, InputError
from tertulia.models.neural.sizes import Kind, Normalisation, Precision

if TYPE_CHECKING:
    from tertulia.models.neural.network import Network


@dataclass(frozen=True, eq=False)
class Encoder:
    """A trained network; torch is imported only when it is used."""

    architecture: dict[str, Any]  # what `network_of` takes
    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running means and variances of the norms
    embedding: str | None = None  # the model of sentence embeddings; None: the offline default

    @property
    def network(self) -> Network:
        """The network that the weights belong to."""
        return network_of(self.architecture)

    @property
    def reads_sentences(self) -> bool:
        """Whether documents need an embedding."""
        return bool(self.architecture["kind"] != "prodlda")

    def theta(self, corpus: Corpus) -> F64:
        """Infer the topic shares [D, K] of a corpus over the model's vocabulary."""
        from tertulia.models.neural.bags import Bags
        from tertulia.models.neural.embeddings import embeddings_of

        network = self.network
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
        """Which documents [D] hold nothing that the encoder reads: no known word, nor sentence where it reads those."""
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


def architecture_of(network: Network) -> dict[str, Any]:
    """A network as plain data, for messages and files."""
    sizes = {**network.sizes._asdict(), "hidden": list(network.sizes.hidden)}
    return {
        "kind": network.kind,
        "sizes": sizes,
        "normalisation": network.normalisation,
        "precision": network.precision,
    }


def network_of(architecture: dict[str, Any]) -> Network:
    """Rebuild a network from plain data."""
    from tertulia.models.neural.network import Network
    from tertulia.models.neural.sizes import Sizes

    try:
        sizes = Sizes(**{**architecture["sizes"], "hidden": tuple(architecture["sizes"]["hidden"])})
        return Network(architecture["kind"], sizes, architecture["normalisation"], architecture["precision"])
    except (KeyError, TypeError) as error:
        raise FormatError(f"this is no neural model that we know ({error}): save it again, or upgrade") from error


def check_network(architecture: dict[str, Any], weights: Array, statistics: Array, V: int) -> Network:
    """The network, if weights and statistics are its own and it reads V words: compiled code trusts their sizes."""
    network = network_of(architecture)
    sizes = network.sizes
    numbers = (sizes.words, sizes.topics, sizes.embedding, *sizes.hidden)
    known = (network.kind in get_args(Kind), network.normalisation in get_args(Normalisation))
    if not (all(known) and network.precision in get_args(Precision)) or any(type(n) is not int for n in numbers):
        raise FormatError("this is no neural model that we know")
    if sizes.words != V or sizes.topics < 1 or min(sizes.hidden, default=0) < 1 or not 0 <= sizes.embedding <= _WIDEST:
        raise FormatError("the network's sizes do not fit its words, or make no network")
    if not (0 <= sizes.dropout < 1 and 0 < sizes.alpha < _WIDEST):
        raise FormatError("the network's dropout or alpha is out of bounds")
    fits = weights.shape == (sum(map(prod, network.shapes.values())),) and str(weights.dtype) == network.precision
    if not fits or statistics.shape != (2, sum(network.features)):
        raise FormatError("weights or statistics are not those of the network")
    return network


_WIDEST = 1_000_000
