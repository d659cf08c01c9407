"""The models of gFedNTM: the shared one, with the sizes of its topics, or each party's own.

The size of a topic is the number of tokens that the encoder ascribes to it, summed over all parties.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, PartyId, message, step
from tertulia.methods.common.rounds import Metrics, Trained
from tertulia.methods.gfedntm.early_stopping import is_finished
from tertulia.methods.gfedntm.messages import SIZES, NeuralState, NeuralTask, network_for, task_of
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models import Topics
from tertulia.models.neural.architecture import architecture_of
from tertulia.models.neural.encoder import Encoder


@message
class OwnModel:
    """A party's own model."""

    weights: Array
    statistics: Array
    sizes: Array  # [K] tokens of each topic

    def check_reply(self, ask: NeuralTask) -> None:
        """Raise unless it is a model of the kind that was asked for."""
        check_array("weights", self.weights, ask.weights.shape)
        check_array("statistics", self.statistics, ask.statistics.shape)
        check_array("sizes", self.sizes, (ask.network.sizes.topics,), least=0)


def shared_model(config: GFedNTMSettings, state: NeuralState) -> Trained:
    """Return the shared model: the last, or with validation the best."""
    chosen = state.best or state
    return Trained(_topics(config, state, chosen.weights, chosen.statistics, state.sizes), {})


def own_models(config: GFedNTMSettings, state: NeuralState, models: dict[PartyId, OwnModel]) -> Trained:
    """Return each party's own model."""
    local = {}
    for party, model in models.items():
        weights, statistics, sizes = map(np.asarray, (model.weights, model.statistics, model.sizes))
        local[party] = _topics(config, state, weights, statistics, sizes)
    return Trained(next(iter(local.values())), local)


def _topics(
    config: GFedNTMSettings, state: NeuralState, weights: Array, statistics: Array, sizes: Array | None
) -> Topics:
    network = network_for(config, len(state.words), state.embedding_size)
    encoder = Encoder(architecture_of(network), weights, statistics, config.embedding)
    alpha = np.full(config.topics, config.alpha)
    return Topics(network.topic_word(weights, statistics), Vocabulary(state.words), alpha, 0.0, sizes, encoder=encoder)


@message
class TopicSizes:
    """A party's part of the topics' sizes; only the total is revealed."""

    tokens: fields.Statistic  # [K]

    def check_reply(self, ask: NeuralTask) -> None:
        """Raise unless each topic has a size."""
        check_array("tokens", self.tokens, (ask.network.sizes.topics,), least=0)


@step(doing="measuring topics")
def sum_sizes(party: Party, state: Any, ask: NeuralTask) -> tuple[Any, TopicSizes]:
    """Count the tokens of this party's training documents by topic."""
    bags, _ = ask.agreement.split(party)
    return state, TopicSizes(party.release(ask.network.tokens_by_topic(ask.weights, ask.statistics, bags), SIZES))


def measure_topics(config: GFedNTMSettings, fed: Federation, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """Ask for the sizes of the resulting topics once training has ended; in mode `doc` they stay unknown."""
    if config.mode == "doc" or not is_finished(config, state):
        return state, {}
    chosen = state.best or state
    task = dataclasses.replace(
        task_of(config, state), weights=chosen.weights, statistics=chosen.statistics, moments=None
    )
    return dataclasses.replace(state, sizes=fed.sum(sum_sizes, task).tokens), {}
