"""How large the topics of a neural model are: the tokens that its encoder ascribes to each, summed over all parties."""

from __future__ import annotations

import dataclasses
from typing import Any

from tertulia._arrays import Array
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.gfedntm.messages import State, Task, task_of
from tertulia.methods.gfedntm.terms import SIZES, NeuralTerms


@message
class TopicSizes:
    """A party's part of the topics' sizes; only the total is revealed."""

    tokens: Array  # [K]


@step
def sum_sizes(party: Party, state: Any, ask: Task) -> tuple[Any, TopicSizes]:
    """The tokens of this party's training documents, by topic."""
    tokens = ask.network.tokens_by_topic(ask.weights, ask.statistics, ask.bags(party))
    return state, TopicSizes(party.release(tokens, SIZES))


def measured(fed: Federation, config: NeuralTerms, state: State) -> State:
    """Ask for the sizes of the topics that will be the result."""
    chosen = state.best or state
    task = dataclasses.replace(
        task_of(config, state), weights=chosen.weights, statistics=chosen.statistics, moments=None
    )
    return dataclasses.replace(state, sizes=fed.sum(sum_sizes, task).tokens)
