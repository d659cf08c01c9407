"""What gFedNTM hands back: the shared model, or each party's own."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.federation.types import PartyId, message
from tertulia.methods.common.result import Trained
from tertulia.methods.gfedntm.messages import NeuralState, NeuralTask, network_for
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models import Topics
from tertulia.models.neural.encoder import Encoder, architecture_of


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
    """The shared model: the last, or with validation the best."""
    chosen = state.best or state
    return Trained(_topics(config, state, chosen.weights, chosen.statistics, state.sizes), {})


def own_models(config: GFedNTMSettings, state: NeuralState, models: dict[PartyId, OwnModel]) -> Trained:
    """Each party's own model."""
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
