"""The messages of gFedNTM, and the states of its two sides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.corpus.vocabulary import pack_words, unpack_words
from tertulia.errors import FormatError
from tertulia.federation import fields
from tertulia.federation.types import Party, message
from tertulia.methods.common.neural_messages import Architecture
from tertulia.methods.gfedntm.settings import GFedNTMSettings, PartyTraining
from tertulia.models.neural.architecture import check_network
from tertulia.models.neural.bags import Bags, Schedule, bags_of
from tertulia.models.neural.embeddings import embeddings_of
from tertulia.models.neural.network import Network, use_threads
from tertulia.privacy.mechanisms import Clear
from tertulia.privacy.mechanisms.things import thing


@message
class Agreement:
    """The parties' agreement before the first step: words, and how to train."""

    text: fields.Bytes  # the words as bytes, so that a step costs no parsing
    offsets: fields.Offsets
    seed: fields.Seed
    training: PartyTraining

    def check(self) -> None:
        """Refuse bytes that are no word list."""
        self._vocabulary()

    @property
    def words(self) -> fields.Words:
        """The words, which are unpacked once."""
        return self._vocabulary().words

    def _vocabulary(self) -> Vocabulary:
        """Unpack the word list. A party's door reads it before other checks, so dtypes are checked here."""
        for name, array, kind in (("text", self.text, np.uint8), ("offsets", self.offsets, np.int64)):
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
                raise FormatError(f"'{name}' of the agreed words must be a row of {kind.__name__}")
        return _unpacked(self.text.tobytes(), self.offsets.tobytes())

    def bags(self, party: Party) -> Bags:
        """Return a party's documents. All steps begin here, so torch gets the party's number of threads here."""
        use_threads(party.setting("threads", 1))
        corpus = party.documents(self._vocabulary())
        embed = (lambda found: embeddings_of(found, self.training.embedding)) if self.training.reads_sentences else None
        return bags_of(corpus, embed)

    def split(self, party: Party) -> tuple[Bags, Bags]:
        """Split a party's documents into training and validation documents."""
        return self.bags(party).split_validation(self.training.validation, self.seed)


@lru_cache(maxsize=8)
def _unpacked(text: bytes, offsets: bytes) -> Vocabulary:
    words = tuple(unpack_words(np.frombuffer(text, np.uint8), np.frombuffer(offsets, np.int64)))
    if len(set(words)) != len(words):
        raise FormatError("the agreed words must be unique")
    return Vocabulary(words)


@message
class NeuralTask:
    """A party's task: to compute on one of its mini-batches, or to train for a while."""

    agreement: Agreement
    architecture: Architecture
    weights: fields.Flat
    statistics: fields.Pairs  # [2, 2K + V] running
    moments: fields.Pairs | None  # [2, n] Adam's, from which local steps go on; None: they start afresh
    step: fields.Round  # of SyncOpt; else the first of the local steps
    batches: fields.Round  # in an epoch
    attempt: fields.Round = 0  # the name of this task: questions that build on it carry the same number
    given_up: fields.RoundList = ()  # attempts that moved no weights: what was sent for them is still to be sent

    def check(self) -> None:
        """Refuse weights that are none of this network, or a network that does not read these words."""
        check_network(self.network, self.weights, self.statistics, len(self.agreement.words))
        moments = self.moments
        if moments is not None and (moments.shape != (2, len(self.weights)) or moments.dtype != self.weights.dtype):
            raise FormatError("'moments' are not those of the weights")
        if self.batches < 1 or self.step < 0:
            raise FormatError("'batches' and 'step' must be numbers of batches")

    @cached_property
    def network(self) -> Network:
        """The model; a task serves several questions."""
        return self.architecture.network()

    @property
    def training(self) -> PartyTraining:
        """How to train."""
        return self.agreement.training

    @property
    def seed(self) -> int:
        """Of batches, dropout and draws."""
        return self.agreement.seed

    @property
    def schedule(self) -> Schedule:
        """How documents fall into the batches of all parties."""
        return Schedule(self.seed, self.batches)


@message
class SharedNorms:
    """The known parts of BatchNorm over all parties' mini-batches (see `models.neural.sync_batch_norm`)."""

    statistics: tuple[fields.Pairs, ...]  # [2, F] mean and variance: the encoder's, then the decoder's
    slopes: tuple[fields.Pairs, ...]  # [2, F] mean slopes: the decoder's, then the encoder's
    documents: float
    attempt: fields.Round  # whose task this builds on


def check_norms(network: Network, statistics: Sequence[Array], slopes: Sequence[Array] = ()) -> None:
    """Refuse statistics and slopes that are not those of the network's norms."""
    first, second = network.features
    for given, widths in ((statistics, (first, second)), (slopes, (second, first))):
        if len(given) > 2 or any(x.shape != (2, width) for x, width in zip(given, widths, strict=False)):
            raise FormatError("statistics are not those of the network's norms")


def check_known(found: Sequence[Array], *counts: int) -> None:
    """Refuse a question that comes too early or too late: `counts` statistics or slopes of norms must be known."""
    if len(found) not in counts:
        raise FormatError("more or fewer of the norms' statistics or slopes are given than this step takes")


@message
class PartyMemory:
    """A party's state: the task at hand, and the parts of earlier gradients that it held back."""

    task: NeuralTask
    held_back: Array
    rest: Array  # what it holds back from now on, unless the attempt is given up


@message
class MomentSums:
    """Sums over a party's documents, by which statistics are made; the method sees only their total."""

    values: fields.Statistic
    documents: fields.DocumentCount


@message
class SlopeMeans:
    """A party's part of mean slopes over all documents; the method sees only their total."""

    values: fields.Statistic


@message
class GradientUpdate:
    """A party's part of the mean gradient."""

    gradient: fields.Gradient  # flat, or the chosen blocks of it
    statistics: fields.Statistic
    loss: fields.Scalar
    weight: fields.ReplyWeight  # documents

    def check_reply(self, ask: Any) -> None:
        """Raise unless it is a gradient of the weights that were sent, where they were."""
        if isinstance(ask, NeuralTask):
            check_array("gradient", self.gradient, ask.weights.shape)


@message
class BestModel:
    """The model with the least validation loss so far."""

    loss: float
    weights: Array
    statistics: Array


@message
class NeuralState:
    """The server's state between rounds."""

    step: int
    words: tuple[str, ...]
    documents: int
    embedding_size: int  # how wide the parties' embeddings are; 0: there are none
    weights: Array
    statistics: Array
    moments: Array  # [2, n] Adam's, after as many steps
    calm: int = 0  # steps in a row in which the weights hardly moved
    losses: tuple[float, ...] = ()  # of epochs: of validation, else of training
    epoch_loss: float = 0.0  # summed over the steps of this epoch
    outer: Array | None = None  # [2, n] FedAdam's own moments, beside those of local steps
    best: BestModel | None = None  # None: nothing was validated
    attempt: int = 0  # the number of the last attempt at a step, which moved the weights
    given_up: tuple[int, ...] = ()  # those that did not, as a party stayed away
    sizes: Array | None = None  # [K] tokens of each topic, once training is over


def agreement_of(config: GFedNTMSettings, words: tuple[str, ...]) -> Agreement:
    """Return what parties agree on, given the words."""
    return Agreement(*pack_words(words), config.seed or 0, config.part(PartyTraining))


def network_for(config: GFedNTMSettings, words: int, embedding: int) -> Network:
    """Return the network that is trained."""
    return Network(config.model, config.sizes(words, embedding, config.norm), config.norm, config.precision)


def batches_of(config: GFedNTMSettings, state: NeuralState) -> int:
    """Count the steps of an epoch: as many as all documents make batches."""
    return Schedule.over(state.documents, config.batch_size, 0).batches


def task_of(config: GFedNTMSettings, state: NeuralState, attempt: int = 0) -> NeuralTask:
    """Return the task of this step."""
    network = network_for(config, len(state.words), state.embedding_size)
    go_on = config.averaging != "syncopt" and config.local_moments == "averaged" and config.scenario != "alone"
    return NeuralTask(
        agreement_of(config, state.words), Architecture.of_network(network), state.weights, state.statistics,
        state.moments if go_on else None, state.step, batches_of(config, state), attempt,
        (*state.given_up, *range(state.attempt + 1, attempt)),
    )  # fmt: skip


GRADIENT = Clear(thing("gradient of a mini-batch", "the direction in which some documents move the network"))
STATISTICS = Clear("statistics of a mini-batch")
WEIGHTS = Clear(thing("network weights", "the network, trained on this party's documents"))
MOMENTS = Clear("moments of gradients")
SIZES = Clear("topic sizes")
LOSS = Clear("training loss", metric=True)
VALIDATION = Clear("validation loss", metric=True)
VALIDATION_STATISTICS = Clear("statistics of validation documents")
