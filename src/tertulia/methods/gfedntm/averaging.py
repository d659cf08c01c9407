"""Federated averaging of neural topic models: several local steps between two rounds.

FedAvg (McMahan et al., AISTATS 2017) adds the mean change of the parties' weights; FedAdam (Reddi et al., "Adaptive
Federated Optimization", ICLR 2021) takes it for a gradient. Parties whose topics differ drift apart in between, and
their average mixes topics. Two things hold them together. Adam's moments are averaged beside the weights, so that local
steps go on in everybody's direction and at everybody's scale (as in MimeLite: Karimireddy et al., NeurIPS 2021, where
they stay fixed during local steps); a fresh Adam would amplify changes of weights that a party knows nothing about. And
norms look at single documents: BatchNorm over one party's would make it use all topics alike, also those of others
alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia._kinds import check_array
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.common.rounds import Metrics
from tertulia.methods.common.vocabulary import DOCUMENTS
from tertulia.methods.gfedntm.early_stopping import add_loss, check_finite
from tertulia.methods.gfedntm.messages import (
    LOSS,
    MOMENTS,
    SIZES,
    STATISTICS,
    WEIGHTS,
    NeuralState,
    NeuralTask,
    task_of,
)
from tertulia.methods.gfedntm.results import OwnModel
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models.neural.bags import Bags, Schedule
from tertulia.models.neural.optimiser import Moments, adam_step
from tertulia.models.neural.training import Pace, Progress, train, train_until


@message
class LocalUpdate:
    """A party's part of a mean: where its local steps have led."""

    change: fields.Flat  # of the weights
    moments: fields.Pairs  # [2, n] Adam's, or [2, 0]: they stay at the party
    statistics: fields.Pairs
    loss: fields.Scalar
    weight: fields.ReplyWeight  # documents

    def check_reply(self, ask: NeuralTask) -> None:
        """Raise unless it is a change of the weights that were sent."""
        check_array("statistics", self.statistics, ask.statistics.shape)


@step(doing="training")
def train_locally(party: Party, state: Any, ask: NeuralTask) -> tuple[Any, LocalUpdate]:
    """Take local steps from the shared weights, and send how far they went."""
    bags, _ = ask.agreement.split(party)
    end = _train_from(ask, bags) if bags.n_documents else _start_of(ask)
    moments = np.zeros((2, 0), ask.weights.dtype)
    if ask.moments is not None and end.moments is not None:
        moments = end.moments.values
    return state, LocalUpdate(
        party.release(end.weights - ask.weights, WEIGHTS),
        party.release(moments, MOMENTS if moments.size else WEIGHTS),  # nothing, where they stay
        party.release(end.statistics, STATISTICS),
        party.release(np.array(end.loss), LOSS),
        party.release(np.array(bags.n_documents), DOCUMENTS),
    )


@step(doing="training alone")
def train_alone(party: Party, state: Any, ask: NeuralTask) -> tuple[Any, OwnModel]:
    """Train on one's own documents, from beginning to end."""
    bags, validation = ask.agreement.split(party)
    how = ask.training
    end = train_until(
        ask.network, _start_of(ask), bags, validation if validation.n_documents else None, _schedule(ask, bags),
        Pace(how.epochs, how.learning_rate, how.betas, how.stop_after),
    )  # fmt: skip
    return state, OwnModel(
        party.release(end.weights, WEIGHTS),
        party.release(end.statistics, STATISTICS),
        party.release(ask.network.tokens_by_topic(end.weights, end.statistics, bags), SIZES),
    )


def _schedule(ask: NeuralTask, bags: Bags) -> Schedule:
    """Return how a party's own documents fall into batches of its own."""
    return Schedule.over(bags.n_documents, ask.training.batch_size, ask.seed)


def _start_of(ask: NeuralTask) -> Progress:
    moments = None if ask.moments is None else Moments(ask.moments, ask.step)
    return Progress(ask.weights, ask.statistics, 0.0, moments)


def _train_from(ask: NeuralTask, bags: Bags) -> Progress:
    how, turns = ask.training, range(ask.step, ask.step + ask.training.local_steps)
    return train(ask.network, _start_of(ask), bags, _schedule(ask, bags), turns, how.learning_rate, how.betas)


def averaging_round(fed: Federation, config: GFedNTMSettings, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """Let parties take local steps, and move the weights by the mean of their changes."""
    update = fed.mean(train_locally, task_of(config, state))
    dtype, outer = state.weights.dtype, state.outer
    if config.averaging == "fedavg":
        weights = state.weights + (config.server_rate or 1.0) * update.change
    else:
        rate, tau = config.server_rate or config.server_tau, config.server_tau
        weights, outer = fedadam(state.weights, update.change, outer, rate, tau, config.server_momentum)
    check_finite(weights)
    moments = update.moments.astype(dtype) if config.local_moments == "averaged" else state.moments
    moved = dataclasses.replace(
        state, step=state.step + config.local_steps, weights=weights.astype(dtype), moments=moments, outer=outer,
        statistics=update.statistics.astype(dtype),
    )  # fmt: skip
    loss = float(update.loss)
    return add_loss(config, moved, loss), {"loss": loss}


_FEDADAM_BETA = 0.99  # of the second moment, as Reddi et al. have it in all their experiments


def descend(config: GFedNTMSettings, weights: Array, gradient: Array, moments: Moments) -> tuple[Array, Array]:
    """Take one step down the gradient: new weights, of the same precision, and Adam's new moments [2, n]."""
    if config.optimiser == "sgd":
        return (weights - config.learning_rate * gradient).astype(weights.dtype), moments.values  # (3)
    moved, after = adam_step(weights, gradient, moments, config.learning_rate, config.betas)
    return moved, after.values


def fedadam(
    weights: Array, change: Array, moments: Array | None, rate: float, tau: float, momentum: float
) -> tuple[Array, Array]:
    """Take one round of FedAdam (Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2).

    The mean change of the parties' weights stands for a gradient. Unlike Adam there is no correction for the start:
    v begins at tau squared. A change much larger than tau moves a weight by about `rate`, a smaller one in
    proportion. `momentum` is beta_1. New weights, and moments [2, n].
    """
    b1, b2 = momentum, _FEDADAM_BETA
    first, second = (np.zeros_like(weights), np.full_like(weights, tau**2)) if moments is None else moments
    first = (b1 * first + (1.0 - b1) * change).astype(weights.dtype)
    second = (b2 * second + (1.0 - b2) * change**2).astype(weights.dtype)
    moved = weights + rate * first / (np.sqrt(second) + tau)
    return moved.astype(weights.dtype), np.stack((first, second))
