"""What all ways of training a neural topic model together share: messages, the first round, the result."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Vocabulary
from tertulia.corpus.vocabulary import pack_words, unpack_words
from tertulia.errors import InputError
from tertulia.federation.types import Federation, Party, PartyId, message, step
from tertulia.methods.common.result import Trained
from tertulia.methods.common.vocabulary import agree
from tertulia.methods.gfedntm.compression import Compression
from tertulia.methods.gfedntm.optimisers import Moments, at_rest
from tertulia.methods.gfedntm.terms import DOCUMENTS, NeuralTerms, normalisation_of
from tertulia.models import Topics
from tertulia.models.neural.bags import Bags, Schedule, bags_of
from tertulia.models.neural.embeddings import embeddings_of
from tertulia.models.neural.encoder import Encoder, architecture_of, network_of
from tertulia.models.neural.network import Network
from tertulia.models.neural.prodlda import Sizes
from tertulia.models.neural.threads import use_threads


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
    moments: Moments | None  # Adam's, from which local steps go on
    validation: float  # the share of documents that only tell when to stop
    stop_after: int
    compression: Compression
    attempt: int = 0  # the name of this task: questions that build on it carry the same number
    given_up: tuple[int, ...] = ()  # attempts that moved no weights: what was sent for them is still to be sent

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
        return self.parts(party)[0]

    def parts(self, party: Party) -> tuple[Bags, Bags]:
        """The party's training and validation documents."""
        ask = Ask(self.text, self.offsets, self.architecture["kind"], self.embedding)
        return _bags(party, ask).parted(self.validation, self.seed)


@lru_cache(maxsize=8)
def _vocabulary(text: bytes, offsets: bytes) -> Vocabulary:
    return Vocabulary(tuple(unpack_words(np.frombuffer(text, np.uint8), np.frombuffer(offsets, np.int64))))


@message
class Memory:
    """What a party keeps: the task at hand, and what of earlier gradients it held back."""

    task: Task
    held_back: Array
    rest: Array  # what it holds back from now on, unless the attempt is given up


@message
class Known:
    """What is known of all parties' batches together (see `models.synchronised`)."""

    statistics: tuple[Array, ...]
    slopes: tuple[Array, ...]  # mean slopes: the decoder's, then the encoder's
    documents: float
    attempt: int  # whose task this builds on


@message
class Sums:
    """Sums over a party's mini-batch; the method sees only their total."""

    values: Array
    documents: Array  # scalar


@message
class Slopes:
    """A party's part of the loss's slopes in shared statistics; the method sees only their total."""

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
    """How many documents a party has, and how wide their embeddings are (0: it has none)."""

    documents: Array  # to train on, and to validate by
    width: Array  # itself, its square, and 1: sums tell whether all are the same


@message
class OwnModel:
    """A party's own model."""

    weights: Array
    statistics: Array
    sizes: Array  # [K] tokens of each topic


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
    losses: tuple[float, ...] = ()  # of epochs: of validation, else of training
    epoch_loss: float = 0.0  # summed over the steps of this epoch
    outer: Moments | None = None  # FedAdam's own, beside those of local steps
    best: Best | None = None  # None: nothing was validated
    attempt: int = 0  # the number of the last attempt at a step, which moved the weights
    given_up: tuple[int, ...] = ()  # those that did not, as a party stayed away
    sizes: Array | None = None  # [K] tokens of each topic, once training is over


@message
class Best:
    """The model with the least validation loss so far."""

    loss: float
    weights: Array
    statistics: Array


@message
class Ask:
    """The agreed words, and which embedding to use."""

    text: Array
    offsets: Array
    kind: str
    embedding: str | None
    validation: float = 0.0
    seed: int = 0


@step
def count_documents(party: Party, state: Any, ask: Ask) -> tuple[Any, Documents]:
    """How many documents hold an agreed word."""
    bags = _bags(party, ask)
    counts = [part.n_documents for part in bags.parted(ask.validation, ask.seed)]
    width = 0 if bags.embeddings is None else bags.embeddings.shape[1]
    return state, Documents(
        party.release(np.array(counts), DOCUMENTS), party.release(np.array([width, width**2, 1]), DOCUMENTS)
    )


def _bags(party: Party, ask: Ask) -> Bags:
    """A party's documents. All steps begin here, so that here torch learns how many threads the party allows."""
    use_threads(party.setting("threads", 1))
    corpus = party.documents(_vocabulary(ask.text.tobytes(), ask.offsets.tobytes()))
    return bags_of(corpus, None if ask.kind == "prodlda" else lambda found: embeddings_of(found, ask.embedding))


def begin(fed: Federation, config: NeuralTerms) -> State:
    """Agree on words (stage 1), count documents, and make the weights from which all start."""
    words = agree(fed, config.vocabulary).words
    if not words:
        raise InputError("the agreed vocabulary is empty: lower `min_documents` or raise `max_share`")
    ask = Ask(*pack_words(words), config.model, config.embedding, config.validation, config.seed or 0)
    counted = fed.sum(count_documents, ask)
    (documents, validation), (total, squares, parties) = map(int, counted.documents), map(int, counted.width)
    if documents == 0:
        raise InputError("no party has a document with an agreed word: check languages and vocabulary")
    if config.validation and not validation:
        raise InputError(f"validation = {config.validation}: of {documents} documents none falls to it; set it to 0")
    if total**2 != parties * squares:  # they vary
        raise InputError("parties embed sentences with models of different width: use the same for all")
    network = _network(config, len(words), total // parties)
    weights = network.start(config.seed or 0)
    return State(0, words, documents, weights, network.resting(), at_rest(weights), 0, total // parties)


def _network(config: NeuralTerms, words: int, embedding: int) -> Network:
    normalisation = normalisation_of(config)
    sizes = Sizes(
        words, config.topics, embedding if config.model != "prodlda" else 0, tuple(config.hidden), config.dropout,
        config.alpha, config.learn_prior, config.literal_adapter, shifts=normalisation == "layer",
    )  # fmt: skip
    return Network(config.model, sizes, normalisation, config.precision)


def task_of(config: NeuralTerms, state: State, attempt: int = 0) -> Task:
    """What parties are asked in this step."""
    network = _network(config, len(state.words), state.embedding_size)
    schedule = Schedule.over(state.documents, config.batch_size, config.seed or 0)
    return Task(
        *pack_words(state.words), architecture_of(network), config.embedding, state.weights, state.statistics,
        schedule.seed, state.step, schedule.batches, _local_steps(config), config.batch_size, config.learning_rate,
        config.betas, _local_moments(config, state), config.validation, config.stop_after, config.compression,
        attempt, (*state.given_up, *range(state.attempt + 1, attempt)),
    )  # fmt: skip


def _local_steps(config: NeuralTerms) -> int:
    """How long a party trains by itself; alone for all epochs, which only it can count (0: until its loss stalls)."""
    return -(config.epochs or 0) if config.scenario == "alone" else config.local_steps


def _local_moments(config: NeuralTerms, state: State) -> Moments | None:
    shared = config.averaging != "syncopt" and config.local_moments == "averaged"
    return state.moments if shared and config.scenario != "alone" else None


def result(config: NeuralTerms, state: State) -> Trained:
    """The shared model: the last, or with validation the best."""
    chosen = state.best or state
    width = state.embedding_size
    return Trained(_topics(config, state.words, chosen.weights, chosen.statistics, state.sizes, width), {})


def result_alone(config: NeuralTerms, words: tuple[str, ...], models: dict[PartyId, OwnModel]) -> Trained:
    """Each party's own model."""
    local = {}
    for party, model in models.items():
        width = 0 if config.model == "prodlda" else _width(config, len(words), model.weights)
        weights, statistics, sizes = map(np.asarray, (model.weights, model.statistics, model.sizes))
        local[party] = _topics(config, words, weights, statistics, sizes, width)
    return Trained(next(iter(local.values())), local)


def _width(config: NeuralTerms, words: int, weights: Array) -> int:
    """How wide embeddings are, from the number of weights."""
    sizes = [sum(int(np.prod(s)) for s in _network(config, words, e).shapes.values()) for e in (1, 2)]
    return 1 + (len(weights) - sizes[0]) // (sizes[1] - sizes[0])


def _topics(
    config: NeuralTerms, words: tuple[str, ...], weights: Array, statistics: Array, sizes: Array | None, width: int
) -> Topics:
    network = _network(config, len(words), width)
    encoder = Encoder(architecture_of(network), weights, statistics, config.embedding)
    alpha = np.full(config.topics, config.alpha)
    return Topics(network.topic_word(weights, statistics), Vocabulary(words), alpha, 0.0, sizes, encoder=encoder)
