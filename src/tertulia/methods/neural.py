"""What all ways of training a neural topic model together share: settings, messages, the first round, the result."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np

from tertulia.arrays import Array
from tertulia.corpus import Vocabulary
from tertulia.corpus.vocabulary import pack_words, unpack_words
from tertulia.errors import InputError
from tertulia.federation.types import Federation, Party, PartyId, message, step
from tertulia.methods.compression import Compression
from tertulia.methods.optimisers import Moments, at_rest
from tertulia.methods.trained import Trained
from tertulia.methods.vocabulary import VocabularyTerms, agree
from tertulia.models import Topics
from tertulia.models.bags import Bags, Schedule, bags_of
from tertulia.models.embeddings import embeddings_of
from tertulia.models.encoder import Encoder, architecture_of, network_of
from tertulia.models.network import Kind, Network, Normalisation
from tertulia.models.prodlda import Sizes
from tertulia.privacy.mechanisms import Clear, Public

GRADIENT = Clear("gradient of a mini-batch")
STATISTICS = Clear("statistics of a mini-batch")
WEIGHTS = Clear("network weights")
LOSS = Clear("training loss", metric=True)
DOCUMENTS = Public("number of documents")


class NeuralTerms(Protocol):
    """What a run's settings say about the method."""

    scenario: Literal["federated", "centralised", "alone"]
    model: Kind
    topics: int
    hidden: tuple[int, ...]
    dropout: float
    alpha: float  # of each topic
    learn_prior: bool
    literal_adapter: bool
    embedding: str | None
    normalisation: Normalisation
    precision: Literal["float32", "float64"]
    seed: int | None
    batch_size: int  # documents in a step, all parties' together
    epochs: int
    rounds: int | None  # the most, whatever the epochs
    averaging: Literal["syncopt", "fedavg", "fedadam"]
    local_steps: int
    optimiser: Literal["sgd", "adam"]
    learning_rate: float
    server_rate: float
    betas: tuple[float, float]
    tolerance: float
    patience: int
    compression: Compression
    keep: float
    checkpoint_every: int
    vocabulary: VocabularyTerms


@message
class Task:
    """What a party needs to compute on one of its mini-batches, or to train for a while."""

    text: Array  # the agreed words as bytes, so that a step costs no parsing
    offsets: Array
    architecture: dict[str, Any]
    embedding: str | None
    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running
    seed: int
    step: int  # of SyncOpt; else the first of the local steps
    batches: int  # in an epoch
    local_steps: int
    batch_size: int  # of local steps
    learning_rate: float
    betas: tuple[float, float]
    compression: Compression

    @property
    def network(self) -> Network:
        """The model."""
        return network_of(self.architecture)

    @property
    def schedule(self) -> Schedule:
        """How documents fall into batches."""
        return Schedule(self.seed, self.batches)

    def bags(self, party: Party) -> Bags:
        """The party's training documents."""
        corpus = party.documents(_vocabulary(self.text.tobytes(), self.offsets.tobytes()))
        if self.architecture["kind"] == "prodlda":
            return bags_of(corpus)
        return bags_of(corpus, lambda found: embeddings_of(found, self.embedding))


@lru_cache(maxsize=8)
def _vocabulary(text: bytes, offsets: bytes) -> Vocabulary:
    return Vocabulary(tuple(unpack_words(np.frombuffer(text, np.uint8), np.frombuffer(offsets, np.int64))))


@message
class Memory:
    """What a party keeps: the task at hand, and what of earlier gradients it held back."""

    task: Task
    held_back: Array


@message
class Known:
    """What is known of all parties' batches together (see `models.synchronised`)."""

    statistics: tuple[Array, ...]
    adjoints: tuple[Array, ...]
    documents: float


@message
class Sums:
    """Sums over a party's mini-batch; only the total is revealed."""

    values: Array
    documents: Array  # scalar


@message
class Slopes:
    """A party's part of the loss's slopes in shared statistics; only the total is revealed."""

    values: Array


@message
class Update:
    """A party's part of a mean."""

    flat: Array  # gradient, or change of the weights
    statistics: Array
    loss: Array  # scalar
    weight: Array  # scalar: documents


@message
class Documents:
    """How many documents a party trains on, and how wide their embeddings are (0: it has none)."""

    documents: Array
    width: Array


@message
class OwnModel:
    """A party's own model."""

    weights: Array
    statistics: Array


@message
class State:
    """What the server keeps between steps."""

    step: int
    words: tuple[str, ...]
    documents: int
    weights: Array
    statistics: Array
    moments: Moments
    calm: int  # steps in a row in which the weights hardly moved
    embedding_size: int


@message
class Ask:
    """The agreed words, and which embedding to use."""

    text: Array
    offsets: Array
    kind: str
    embedding: str | None


@step
def count_documents(party: Party, state: Any, ask: Ask) -> tuple[Any, Documents]:
    """How many documents hold an agreed word."""
    corpus = party.documents(_vocabulary(ask.text.tobytes(), ask.offsets.tobytes()))
    plain = ask.kind == "prodlda"
    bags = bags_of(corpus) if plain else bags_of(corpus, lambda found: embeddings_of(found, ask.embedding))
    width = 0 if bags.embeddings is None else bags.embeddings.shape[1]
    return state, Documents(
        party.release(np.array([bags.n_documents]), DOCUMENTS), party.release(np.array([width, 1]), DOCUMENTS)
    )


def begin(fed: Federation, config: NeuralTerms) -> State:
    """Agree on words (stage 1), count documents, and make the weights from which all start."""
    words = agree(fed, config.vocabulary).words
    if not words:
        raise InputError("the agreed vocabulary is empty: lower `min_documents` or raise `max_share`")
    counted = fed.sum(count_documents, Ask(*pack_words(words), config.model, config.embedding))
    documents, (total, parties) = int(counted.documents[0]), counted.width
    if documents == 0:
        raise InputError("no party has a document with an agreed word: check languages and vocabulary")
    if total % parties:
        raise InputError("parties embed sentences with models of different width: use the same for all")
    network = _network(config, len(words), int(total // parties))
    weights = network.start(config.seed or 0)
    return State(0, words, documents, weights, network.resting(), at_rest(weights), 0, int(total // parties))


def _network(config: NeuralTerms, words: int, embedding: int) -> Network:
    sizes = Sizes(
        words, config.topics, embedding if config.model != "prodlda" else 0, tuple(config.hidden), config.dropout,
        config.alpha, config.learn_prior, config.literal_adapter, shifts=config.normalisation == "layer",
    )  # fmt: skip
    # In one place, and in local steps, the batch's own statistics are everybody's.
    own = config.scenario != "federated" or config.averaging != "syncopt"
    normalisation = "batch" if own and config.normalisation == "sync" else config.normalisation
    return Network(config.model, sizes, normalisation, config.precision)


def task_of(config: NeuralTerms, state: State) -> Task:
    """What parties are asked in this step."""
    network = _network(config, len(state.words), state.embedding_size)
    schedule = Schedule.over(state.documents, config.batch_size, config.seed or 0)
    return Task(
        *pack_words(state.words), architecture_of(network), config.embedding, state.weights, state.statistics,
        schedule.seed, state.step, schedule.batches, _local_steps(config), config.batch_size, config.learning_rate,
        config.betas, config.compression,
    )  # fmt: skip


def _local_steps(config: NeuralTerms) -> int:
    """How long a party trains by itself; alone it does so for all epochs, which only it can count."""
    return -config.epochs if config.scenario == "alone" else config.local_steps


def finished(config: NeuralTerms, state: State, steps: int = 1) -> bool:
    """The paper's rule: the weights have stalled, or the limit is reached."""
    limit = config.epochs * Schedule.over(state.documents, config.batch_size, 0).batches
    if config.rounds is not None:
        limit = min(limit, config.rounds * steps)
    return state.step >= limit or state.calm >= config.patience


def result(config: NeuralTerms, state: State) -> Trained:
    """The shared model."""
    return Trained(_topics(config, state.words, state.weights, state.statistics, state.embedding_size), {})


def result_alone(config: NeuralTerms, words: tuple[str, ...], models: dict[PartyId, OwnModel]) -> Trained:
    """Each party's own model."""
    local = {}
    for party, model in models.items():
        width = 0 if config.model == "prodlda" else _width(config, len(words), model.weights)
        local[party] = _topics(config, words, np.asarray(model.weights), np.asarray(model.statistics), width)
    return Trained(next(iter(local.values())), local)


def _width(config: NeuralTerms, words: int, weights: Array) -> int:
    """How wide embeddings are, from the number of weights."""
    sizes = [sum(int(np.prod(s)) for s in _network(config, words, e).shapes.values()) for e in (1, 2)]
    return 1 + (len(weights) - sizes[0]) // (sizes[1] - sizes[0])


def _topics(config: NeuralTerms, words: tuple[str, ...], weights: Array, statistics: Array, width: int) -> Topics:
    network = _network(config, len(words), width)
    encoder = Encoder(architecture_of(network), weights, statistics, config.embedding)
    alpha = np.full(config.topics, config.alpha)
    return Topics(network.topic_word(weights, statistics), Vocabulary(words), alpha, 0.0, encoder=encoder)
