"""How large the topics of a neural model are: the tokens that its encoder ascribes to each, summed over all parties."""

from __future__ import annotations

import dataclasses
from typing import Any

from tertulia._arrays import Array
from tertulia._kinds import check_array
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.common.rounds import Metrics
from tertulia.methods.gfedntm.disclosures import SIZES
from tertulia.methods.gfedntm.limits import is_finished
from tertulia.methods.gfedntm.messages import NeuralState, NeuralTask, task_of
from tertulia.methods.gfedntm.settings import GFedNTMSettings


@message
class TopicSizes:
    """A party's part of the topics' sizes; only the total is revealed."""

    tokens: Array  # [K]

    def check_reply(self, ask: NeuralTask) -> None:
        """Raise unless each topic has a size."""
        check_array("tokens", self.tokens, (ask.network.sizes.topics,), least=0)


@step
def sum_sizes(party: Party, state: Any, ask: NeuralTask) -> tuple[Any, TopicSizes]:
    """The tokens of this party's training documents, by topic."""
    bags, _ = ask.agreement.split(party)
    return state, TopicSizes(party.release(ask.network.tokens_by_topic(ask.weights, ask.statistics, bags), SIZES))


def measure_topics(config: GFedNTMSettings, fed: Federation, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """When training has ended, ask for the sizes of the topics that will be the result."""
    if not is_finished(config, state):
        return state, {}
    chosen = state.best or state
    task = dataclasses.replace(
        task_of(config, state), weights=chosen.weights, statistics=chosen.statistics, moments=None
    )
    return dataclasses.replace(state, sizes=fed.sum(sum_sizes, task).tokens), {}
