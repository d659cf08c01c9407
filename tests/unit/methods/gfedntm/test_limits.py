"""When an epoch of rounds with several local steps ends, and which loss it has."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from tertulia.methods.gfedntm.limits import ends_epoch, finished, with_loss
from tertulia.methods.gfedntm.messages import State
from tertulia.methods.gfedntm.optimisers import at_rest

CONFIG = SimpleNamespace(
    batch_size=10, validation=0.0, epochs=None, rounds=None, patience=20, stop_after=1, averaging="fedavg"
)


def rounds_of(losses, steps):
    """A state after rounds of so many steps over seven batches an epoch, and after which of them an epoch ended."""
    weights = np.zeros(1)
    state, ends = State(0, ("a",), 70, weights, weights, at_rest(weights), 0, 0), []
    for number, loss in enumerate(losses, start=1):
        state = dataclasses.replace(state, step=state.step + steps)
        if ends_epoch(CONFIG, state, steps):
            ends.append(number)
        state = with_loss(CONFIG, state, loss, steps)
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
    assert not finished(CONFIG, falling, 10)
    assert finished(CONFIG, flat, 10)
