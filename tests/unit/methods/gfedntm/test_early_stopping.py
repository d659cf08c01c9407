"""When an epoch of rounds with several local steps ends, and which loss it has."""

import dataclasses

import numpy as np
import pytest

from tertulia.methods.gfedntm.early_stopping import add_loss, ends_epoch, is_finished
from tertulia.methods.gfedntm.messages import NeuralState
from tertulia.methods.gfedntm.settings import GFedNTMSettings


def config_of(steps):
    return GFedNTMSettings(batch_size=10, stop_after=1, averaging="fedavg", local_steps=steps)


def rounds_of(losses, steps):
    """A state after rounds of `steps` steps over seven batches an epoch, and after which of them an epoch ended."""
    weights, config = np.zeros(1), config_of(steps)
    state, ends = NeuralState(0, ("a",), 70, 0, weights, weights, np.zeros((2, 1))), []
    for number, loss in enumerate(losses, start=1):
        state = dataclasses.replace(state, step=state.step + steps)
        if ends_epoch(config, state):
            ends.append(number)
        state = add_loss(config, state, loss)
    return state, ends


@pytest.mark.parametrize(
    ("steps", "ends", "losses"),
    [
        (1, [7], [4.0]),  # the mean of 1..7
        (3, [3, 5, 7], [2.0, 4.5, 6.5]),  # steps 9, 15 and 21 are the first beyond 7, 14 and at 21
        (10, [1, 2, 3, 4, 5, 6, 7], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),  # every round is more than an epoch
    ],
)
def test_an_epoch_s_loss_is_the_mean_of_the_rounds_that_ended_in_it(steps, ends, losses):
    state, found = rounds_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], steps)
    assert found == ends
    assert state.losses == pytest.approx(losses)


def test_training_without_a_number_of_epochs_ends_when_its_loss_stalls():
    falling, _ = rounds_of([5.0, 4.0, 3.0], 10)
    flat, _ = rounds_of([5.0, 4.0, 4.0], 10)
    assert not is_finished(config_of(10), falling)
    assert is_finished(config_of(10), flat)
