"""Federated averaging of neural topic models: several local steps between two rounds.

FedAvg (McMahan et al., AISTATS 2017) adds the mean change of the parties' weights; FedAdam (Reddi et al., "Adaptive
Federated Optimization", ICLR 2021) takes it for a gradient. Statistics of BatchNorm are averaged beside the weights.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia.federation.types import Federation, Party, step
from tertulia.methods.neural import (
    DOCUMENTS,
    LOSS,
    STATISTICS,
    WEIGHTS,
    NeuralTerms,
    OwnModel,
    State,
    Task,
    Update,
    finished,
    task_of,
)  # fmt: skip
from tertulia.methods.optimisers import stepped
from tertulia.models.bags import Schedule
from tertulia.models.training import Progress, train

_FEDADAM = (0.9, 0.99), 1e-3  # betas and epsilon, as Reddi et al. advise


@step
def train_locally(party: Party, state: Any, ask: Task) -> tuple[Any, Update]:
    """Take local steps from the shared weights, and tell how far they went."""
    documents = ask.bags(party).n_documents
    end = _trained(party, ask, ask.local_steps) if documents else Progress(ask.weights, ask.statistics, 0.0)
    return state, Update(
        party.release(end.weights - ask.weights, WEIGHTS),
        party.release(end.statistics, STATISTICS),
        party.release(np.array(end.loss), LOSS),
        party.release(np.array(documents), DOCUMENTS),
    )


@step
def train_alone(party: Party, state: Any, ask: Task) -> tuple[Any, OwnModel]:
    """Train on one's own documents, from beginning to end."""
    schedule = _schedule(party, ask)
    end = _trained(party, ask, -ask.local_steps * schedule.batches)
    return state, OwnModel(party.release(end.weights, WEIGHTS), party.release(end.statistics, STATISTICS))


def _schedule(party: Party, ask: Task) -> Schedule:
    return Schedule.over(ask.bags(party).n_documents, ask.batch_size, ask.seed)


def _trained(party: Party, ask: Task, steps: int) -> Progress:
    start = Progress(ask.weights, ask.statistics, 0.0)
    turns = range(ask.step, ask.step + steps)
    return train(ask.network, start, ask.bags(party), _schedule(party, ask), turns, ask.learning_rate, ask.betas)


def average_rounds(fed: Federation, config: NeuralTerms, state: State) -> State:
    """Rounds of local steps, until the limit of epochs or rounds."""
    while not finished(config, state, config.local_steps):
        update = fed.mean(train_locally, task_of(config, state))
        if config.averaging == "fedavg":
            weights, moments = state.weights + config.server_rate * update.flat, state.moments
        else:
            betas, eps = _FEDADAM
            weights, moments = stepped(
                state.weights, -update.flat, state.moments, "adam", config.server_rate, betas, eps
            )
        dtype = state.weights.dtype
        state = dataclasses.replace(
            state, step=state.step + config.local_steps, weights=weights.astype(dtype), moments=moments,
            statistics=update.statistics.astype(dtype),
        )  # fmt: skip
        state = fed.commit(state, durable=config.checkpoint_every, loss=float(update.loss))
    return state
