"""Federated averaging of neural topic models: several local steps between two rounds.

FedAvg (McMahan et al., AISTATS 2017) adds the mean change of the parties' weights; FedAdam (Reddi et al., "Adaptive
Federated Optimization", ICLR 2021) takes it for a gradient. Parties whose topics differ drift apart in between, and
make a jumble of topics when averaged. Two things hold them together. Adam's moments are averaged beside the weights, so
that local steps go on in everybody's direction and at everybody's scale (as in MimeLite: Karimireddy et al., NeurIPS
2021, where they stay fixed during local steps); a fresh Adam would blow up what a party knows nothing about. And norms
look at single documents: BatchNorm over one party's would make it use all topics alike, also those of others alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.gfedntm.limits import check_finite, ends_epoch, finished, with_loss
from tertulia.methods.gfedntm.messages import OwnModel, State, Task, task_of
from tertulia.methods.gfedntm.optimisers import Moments, fedadam
from tertulia.methods.gfedntm.stopping import checked
from tertulia.methods.gfedntm.terms import DOCUMENTS, LOSS, MOMENTS, SIZES, STATISTICS, WEIGHTS, NeuralTerms
from tertulia.methods.gfedntm.topic_sizes import measured
from tertulia.models.neural.bags import Bags, Schedule
from tertulia.models.neural.optimiser import Moments as Remembered
from tertulia.models.neural.training import Progress, train
from tertulia.models.neural.validation import Pace, train_until


@message
class LocalUpdate:
    """A party's part of a mean: where its local steps have led."""

    change: Array  # of the weights
    moments: Array  # [2, n] Adam's, or [2, 0]: they stay at the party
    statistics: Array
    loss: Array  # scalar
    weight: Array  # scalar: documents


@step
def train_locally(party: Party, state: Any, ask: Task) -> tuple[Any, LocalUpdate]:
    """Take local steps from the shared weights, and tell how far they went."""
    bags = ask.bags(party)
    end = _trained(ask, bags) if bags.n_documents else _start(ask)
    moments = np.zeros((2, 0), ask.weights.dtype)
    if ask.moments is not None and end.moments is not None:
        moments = np.stack(end.moments[:2])
    return state, LocalUpdate(
        party.release(end.weights - ask.weights, WEIGHTS),
        party.release(moments, MOMENTS if moments.size else WEIGHTS),  # nothing, where they stay
        party.release(end.statistics, STATISTICS),
        party.release(np.array(end.loss), LOSS),
        party.release(np.array(bags.n_documents), DOCUMENTS),
    )


@step
def train_alone(party: Party, state: Any, ask: Task) -> tuple[Any, OwnModel]:
    """Train on one's own documents, from beginning to end."""
    bags, validation = ask.parts(party)
    end = train_until(
        ask.network, _start(ask), bags, validation if validation.n_documents else None, _schedule(ask, bags),
        Pace(-ask.local_steps or None, ask.learning_rate, ask.betas, ask.stop_after),
    )  # fmt: skip
    return state, OwnModel(
        party.release(end.weights, WEIGHTS),
        party.release(end.statistics, STATISTICS),
        party.release(ask.network.tokens_by_topic(end.weights, end.statistics, bags), SIZES),
    )


def _schedule(ask: Task, bags: Bags) -> Schedule:
    return Schedule.over(bags.n_documents, ask.batch_size, ask.seed)


def _start(ask: Task) -> Progress:
    known = ask.moments
    moments = None if known is None else Remembered(known.first, known.second, known.step)
    return Progress(ask.weights, ask.statistics, 0.0, moments)


def _trained(ask: Task, bags: Bags) -> Progress:
    turns = range(ask.step, ask.step + ask.local_steps)
    return train(ask.network, _start(ask), bags, _schedule(ask, bags), turns, ask.learning_rate, ask.betas)


def average_rounds(fed: Federation, config: NeuralTerms, state: State) -> State:
    """Rounds of local steps, until a limit is reached or validation no longer improves."""
    while not finished(config, state, config.local_steps):
        update = fed.mean(train_locally, task_of(config, state))
        told = {"loss": float(update.loss)}
        state = with_loss(config, _moved(config, state, update), told["loss"], config.local_steps)
        if config.validation and ends_epoch(config, state, config.local_steps):
            state, told["validation"] = checked(fed, config, state)
        if finished(config, state, config.local_steps):
            state = measured(fed, config, state)
        state = fed.commit(state, durable=config.checkpoint_every, **told)
    return state


def _moved(config: NeuralTerms, state: State, update: LocalUpdate) -> State:
    dtype, outer = state.weights.dtype, state.outer
    if config.averaging == "fedavg":
        weights = state.weights + (config.server_rate or 1.0) * update.change
    else:
        rate, tau = config.server_rate or config.server_tau, config.server_tau
        weights, outer = fedadam(state.weights, update.change, outer, rate, tau, config.server_momentum)
    check_finite(weights)
    moments = state.moments
    if config.local_moments == "averaged":
        first, second = update.moments.astype(dtype)
        moments = Moments(first, second, moments.step + config.local_steps)
    return dataclasses.replace(
        state, step=state.step + config.local_steps, weights=weights.astype(dtype), moments=moments, outer=outer,
        statistics=update.statistics.astype(dtype),
    )  # fmt: skip
