"""How large the topics of a neural model are: the tokens that its encoder ascribes to each, summed over all parties."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia.arrays import F64, Array
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.neural import State, Task, task_of
from tertulia.methods.neural_terms import SIZES, NeuralTerms
from tertulia.models.bags import Bags
from tertulia.models.network import Network

_BATCH = 1024


@message
class TopicSizes:
    """A party's part of the topics' sizes; only the total is revealed."""

    tokens: Array  # [K]


@step
def sum_sizes(party: Party, state: Any, ask: Task) -> tuple[Any, TopicSizes]:
    """The tokens of this party's training documents, by topic."""
    tokens = tokens_by_topic(ask.network, ask.weights, ask.statistics, ask.bags(party))
    return state, TopicSizes(party.release(tokens, SIZES))


def tokens_by_topic(network: Network, weights: Array, statistics: Array, bags: Bags) -> F64:
    """Each document's tokens in the proportions of its theta, added up: [K]."""
    total = np.zeros(network.sizes.topics)
    for start in range(0, bags.n_documents, _BATCH):
        batch = bags.select(np.arange(start, min(start + _BATCH, bags.n_documents)))
        tokens = np.add.reduceat(batch.counts, batch.offsets[:-1], dtype=np.float64)  # no document is empty
        total += tokens @ network.theta(weights, statistics, batch)
    return total


def measured(fed: Federation, config: NeuralTerms, state: State) -> State:
    """Ask for the sizes of the topics that will be the result."""
    chosen = state.best or state
    task = dataclasses.replace(
        task_of(config, state), weights=chosen.weights, statistics=chosen.statistics, moments=None
    )
    return dataclasses.replace(state, sizes=fed.sum(sum_sizes, task).tokens)
