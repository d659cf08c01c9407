"""Stage 1 of gFedNTM: one vocabulary for all, and the weights from which all start."""

from __future__ import annotations

from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.common.vocabulary import DOCUMENTS, agree
from tertulia.methods.gfedntm.messages import Agreement, NeuralState, agreement_of, network_for
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models import Topics
from tertulia.models.neural.encoder import Encoder
from tertulia.models.neural.network import Network
from tertulia.models.neural.optimiser import Moments

_WIDEST = 1 << 20  # numbers of an embedding


@message
class DocumentCounts:
    """A party's numbers of documents, and the width of their embeddings (0: it has none)."""

    documents: fields.TwoCounts  # to train on, and to validate by
    width: fields.Moments  # itself, its square, and 1: by sums one sees whether all are the same

    def check_reply(self, ask: Agreement) -> None:
        """Raise unless width and square belong together."""
        width, square, one = map(int, self.width)
        if square != width**2 or one != 1 or width > _WIDEST:
            raise FormatError("'width' is not a width, its square, and 1")


@step(doing="agreeing on words")
def count_documents(party: Party, state: Any, ask: Agreement) -> tuple[Any, DocumentCounts]:
    """Count the documents that hold an agreed word."""
    bags, validation = ask.split(party)
    counts = [bags.n_documents, validation.n_documents]
    width = bags.embeddings.shape[1] if ask.training.reads_sentences and bags.embeddings is not None else 0
    return state, DocumentCounts(
        party.release(np.array(counts), DOCUMENTS), party.release(np.array([width, width**2, 1]), DOCUMENTS)
    )


def begin(fed: Federation, config: GFedNTMSettings, last: Topics | None = None) -> NeuralState:
    """Agree on words, count documents, and make the first weights, or take them from an earlier model."""
    words = agree(fed, config.vocabulary, last.vocabulary.words if last else ()).words
    if not words:
        raise InputError("the agreed vocabulary is empty: lower `min_documents` or raise `max_share`")
    documents, width = _count(fed, config, words) if config.mode == "clear" else (config.declared_documents or 0, 0)
    network = network_for(config, len(words), width)
    weights, statistics = network.initial_weights(config.seed or 0), network.initial_statistics()
    if last is not None and isinstance(last.encoder, Encoder):
        weights, statistics = extend_network(network, weights, statistics, last.encoder)
    moments = Moments.initial(weights).values
    return NeuralState(0, words, documents, width, weights, statistics, moments)


def _count(fed: Federation, config: GFedNTMSettings, words: tuple[str, ...]) -> tuple[int, int]:
    """Count the documents to train on, and find the width of their embeddings."""
    counted = fed.sum(count_documents, agreement_of(config, words))
    (documents, validation), (total, squares, parties) = map(int, counted.documents), map(int, counted.width)
    if documents == 0:
        raise InputError("no party has a document with an agreed word: check languages and vocabulary")
    if config.validation and not validation:
        raise InputError(f"validation = {config.validation}: of {documents} documents none falls to it; set it to 0")
    if total**2 != parties * squares:  # they vary
        raise InputError("parties embed sentences with models of different width: use the same for all")
    return documents, total // parties


def extend_network(network: Network, weights: Array, statistics: Array, before: Encoder) -> tuple[Array, Array]:
    """Copy an earlier network's weights and statistics over the first ones; new words, the last, keep theirs.

    An axis of words begins with the earlier ones, and all others are the same, so an earlier array is a corner of the
    new one.
    """
    known = before.network
    if known.sizes._replace(words=0) != network.sizes._replace(words=0):
        raise InputError(
            "the network of the earlier model is another one, of other sizes or embeddings: leave `start_from` out, or "
            "use the same settings"
        )
    named, statistics = network.named(weights.copy()), statistics.copy()
    for name, part in known.named(before.weights).items():
        named[name][tuple(slice(n) for n in part.shape)] = part
    statistics[:, : before.statistics.shape[1]] = before.statistics
    return np.concatenate([part.reshape(-1) for part in named.values()]), statistics
