"""Early stopping by validation documents (gFedNTM, sec. 4.1: a 75:25 split), of which only the mean loss leaves."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tertulia.arrays import Array
from tertulia.federation.types import Federation, Party, message, step
from tertulia.methods.neural import Best, State, Task, task_of
from tertulia.methods.neural_terms import DOCUMENTS, VALIDATION, NeuralTerms
from tertulia.models.validation import loss_of

_NOBODY = 1e-12  # the weight of a party that has no validation document


@message
class Validated:
    """A party's part of the mean validation loss."""

    loss: Array  # scalar
    weight: Array  # scalar: documents


@step
def validate(party: Party, state: Any, ask: Task) -> tuple[Any, Validated]:
    """How well the shared weights explain documents that took no part in training."""
    _, bags = ask.parts(party)
    loss = loss_of(ask.network, ask.weights, ask.statistics, bags)
    weight = float(bags.n_documents) or _NOBODY
    return state, Validated(party.release(np.array(loss), VALIDATION), party.release(np.array(weight), DOCUMENTS))


def checked(fed: Federation, config: NeuralTerms, state: State) -> tuple[State, float]:
    """Ask for the validation loss, and remember the weights if it is the least so far."""
    loss = float(fed.mean(validate, task_of(config, state)).loss)
    if state.best is None or loss < state.best.loss:
        best = Best(loss, state.weights, state.statistics, 0)
    else:
        best = dataclasses.replace(state.best, waited=state.best.waited + 1)
    return dataclasses.replace(state, best=best), loss
