"""When training together ends: at a limit, when it no longer helps, or when it has gone wrong."""

from __future__ import annotations

import dataclasses

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.methods.gfedntm.messages import NeuralState, batches_of
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models.neural.convergence import MOST_EPOCHS, has_stalled


def is_finished(config: GFedNTMSettings, state: NeuralState) -> bool:
    """The paper's rules: the weights have stalled, the limit is reached, or validation no longer improves.

    Where no number of epochs is given, training ends when its loss stalls, by the rule of one machine.
    """
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
    """Whether an epoch ended in the round just ended."""
    batches = batches_of(config, state)
    return state.step // batches > (state.step - config.steps_per_round) // batches


def check_finite(*numbers: Array) -> None:
    """Training that has diverged must not go on as if nothing were: at a party or at the server, it ends here."""
    if not all(np.all(np.isfinite(part)) for part in numbers):
        raise InputError("training has diverged (a gradient, a loss or a weight is not finite): lower `learning_rate`")
