"""Early stopping by validation documents (gFedNTM, sec. 4.1: a 75:25 split), of which only the mean loss leaves.

The loss is the training loss, see `models.neural.training`. If parties share the statistics of norms in training, they
share them here, by two more sums. Parties that train with their own statistics validate with their own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.rounds import Metrics
from tertulia.methods.common.vocabulary import DOCUMENTS
from tertulia.methods.gfedntm.messages import (
    VALIDATION,
    VALIDATION_STATISTICS,
    BestModel,
    MomentSums,
    NeuralState,
    NeuralTask,
    batches_of,
    check_known,
    check_norms,
    task_of,
)
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models.neural.sync_batch_norm import statistics_of
from tertulia.models.neural.training import MOST_EPOCHS, has_stalled, loss_under, validation_loss, validation_moments

_NOBODY = 1e-12  # the weight of a party that has no validation document


@message
class ValidationTask:
    """The weights to validate, and the statistics of all parties' validation documents, as far as they are known."""

    task: NeuralTask
    statistics: tuple[fields.Pairs, ...]

    def check(self) -> None:
        """Refuse statistics of another network."""
        check_norms(self.task.network, self.statistics)


@message
class ValidationLoss:
    """A party's part of the mean validation loss."""

    loss: fields.Scalar
    weight: fields.ReplyWeight  # documents


@step(doing="scoring", metric=True)
def sum_validation(party: Party, state: Any, ask: ValidationTask) -> tuple[Any, MomentSums]:
    """Sum what makes the next norm's statistics over validation documents."""
    task, (_, bags) = ask.task, ask.task.agreement.split(party)
    check_known(ask.statistics, 0, 1)
    values = validation_moments(task.network, task.weights, bags, task.seed, ask.statistics)
    return state, MomentSums(
        party.release(values, VALIDATION_STATISTICS), party.release(np.array(bags.n_documents), DOCUMENTS)
    )


@step(doing="scoring", metric=True)
def validate(party: Party, state: Any, ask: ValidationTask) -> tuple[Any, ValidationLoss]:
    """Measure how well the shared weights explain documents that took no part in training."""
    task, (_, bags) = ask.task, ask.task.agreement.split(party)
    check_known(ask.statistics, 0, 2)
    if ask.statistics:
        loss = loss_under(task.network, task.weights, bags, task.seed, ask.statistics)
    else:
        loss = validation_loss(task.network, task.weights, bags, task.seed)
    weight = float(bags.n_documents) or _NOBODY
    return state, ValidationLoss(party.release(np.array(loss), VALIDATION), party.release(np.array(weight), DOCUMENTS))


def validate_epoch(config: GFedNTMSettings, fed: Federation, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """Ask for the validation loss after each epoch, record it, and keep the weights if it is the least so far."""
    if not (config.validation and ends_epoch(config, state)):
        return state, {}
    task, known = task_of(config, state), tuple[Array, ...]()
    if config.norm == "sync":
        for _ in task.network.features:
            sums = fed.sum(sum_validation, ValidationTask(task, known))
            found = statistics_of(sums.values, float(sums.documents))
            check_finite(found)
            known = (*known, found)
    loss = float(fed.mean(validate, ValidationTask(task, known)).loss)
    best = state.best
    if best is None or loss < best.loss:
        best = BestModel(loss, state.weights, state.statistics)
    return dataclasses.replace(state, best=best, losses=(*state.losses, loss)), {"validation": loss}


def plan_validation(config: GFedNTMSettings, times: int) -> list[Planned]:
    """List what will leave a party by this number of validations."""
    if not config.validation:
        return []
    losses = [Planned(validate, "mean", how, times) for how in (VALIDATION, DOCUMENTS)]
    if config.norm != "sync":
        return losses
    return losses + [Planned(sum_validation, "sum", how, 2 * times) for how in (VALIDATION_STATISTICS, DOCUMENTS)]


def is_finished(config: GFedNTMSettings, state: NeuralState) -> bool:
    """Return whether training ends, by the paper's rules: weights stall, the limit is reached, or validation stalls.

    Where no number of epochs is given, training ends when its loss stalls, by the rule of one machine.
    """
    if config.mode == "doc":  # its noise is for this number of steps, and no loss leaves
        return state.step >= (config.rounds or 0)
    limit = (config.epochs or MOST_EPOCHS) * batches_of(config, state)
    if config.rounds is not None:
        limit = min(limit, config.rounds * config.steps_per_round)
    by_loss = config.validation > 0 or config.epochs is None
    calm = state.calm >= config.patience
    return state.step >= limit or calm or (by_loss and has_stalled(state.losses, config.stop_after))


def add_loss(config: GFedNTMSettings, state: NeuralState, loss: float) -> NeuralState:
    """Add the training loss of the round just ended to its epoch; complete epochs are noted, unless validated."""
    steps, batches = config.steps_per_round, batches_of(config, state)
    total = state.epoch_loss + loss * steps
    if not ends_epoch(config, state):
        return dataclasses.replace(state, epoch_loss=total)
    before = -(-((state.step - steps) // batches * batches) // steps) * steps  # the end of the epoch's first round
    losses = state.losses if config.validation else (*state.losses, total / (state.step - before))
    return dataclasses.replace(state, epoch_loss=0.0, losses=losses)


def ends_epoch(config: GFedNTMSettings, state: NeuralState) -> bool:
    """Return whether an epoch ended in the last round."""
    batches = batches_of(config, state)
    return state.step // batches > (state.step - config.steps_per_round) // batches


def check_finite(*numbers: Array) -> None:
    """Raise `InputError` if training has diverged, at a party or at the server."""
    if not all(np.all(np.isfinite(part)) for part in numbers):
        raise InputError("training has diverged (a gradient, a loss or a weight is not finite): lower `learning_rate`")
