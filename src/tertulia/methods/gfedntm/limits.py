"""When training together ends: at a limit, when it no longer helps, or when it has gone wrong."""

from __future__ import annotations

import dataclasses

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.methods.gfedntm.messages import State
from tertulia.methods.gfedntm.terms import NeuralTerms
from tertulia.models.neural.bags import Schedule
from tertulia.models.neural.convergence import MOST_EPOCHS, stalled


def finished(config: NeuralTerms, state: State, steps: int = 1) -> bool:
    """The paper's rules: the weights have stalled, the limit is reached, or validation no longer improves.

    Where no number of epochs is given, training ends when its loss stalls, by the rule of one machine. A round has so
    many `steps`.
    """
    limit = (config.epochs or MOST_EPOCHS) * batches_of(config, state)
    if config.rounds is not None:
        limit = min(limit, config.rounds * steps)
    by_loss = config.validation > 0 or config.epochs is None
    return (
        state.step >= limit or state.calm >= config.patience or (by_loss and stalled(state.losses, config.stop_after))
    )


def with_loss(config: NeuralTerms, state: State, loss: float, steps: int = 1) -> State:
    """Add the training loss of the round just ended to its epoch; complete epochs are noted, unless validated."""
    total = state.epoch_loss + loss * steps
    if not ends_epoch(config, state, steps):
        return dataclasses.replace(state, epoch_loss=total)
    batches = batches_of(config, state)
    noted = -(-((state.step - steps) // batches * batches) // steps) * steps  # the round's end that ended the last one
    losses = state.losses if config.validation else (*state.losses, total / (state.step - noted))
    return dataclasses.replace(state, epoch_loss=0.0, losses=losses)


def ends_epoch(config: NeuralTerms, state: State, steps: int = 1) -> bool:
    """Whether an epoch, as many steps as all documents make batches, ended in the round just ended."""
    batches = batches_of(config, state)
    return state.step // batches > (state.step - steps) // batches


def batches_of(config: NeuralTerms, state: State) -> int:
    """How many steps an epoch has."""
    return Schedule.over(state.documents, config.batch_size, 0).batches


def check_finite(*numbers: Array) -> None:
    """Training that has diverged must not go on as if nothing were: at a party or at the server, it ends here."""
    if not all(np.all(np.isfinite(part)) for part in numbers):
        raise InputError("training has diverged (a gradient, a loss or a weight is not finite): lower `learning_rate`")
