"""The party's half of SyncOpt: its computations on its part of a mini-batch.

The first question of a step brings the task, with the weights; those that follow build on it. With `sync` norms there
are five: two for statistics, two for slopes, and one for the gradient (`models.neural.sync_batch_norm`).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError, Missed
from tertulia.federation import fields
from tertulia.federation.types import Party, message, step
from tertulia.methods.common.vocabulary import DOCUMENTS
from tertulia.methods.gfedntm.compression import (
    block_norms,
    check_blocks,
    clear_blocks,
    select_blocks,
    to_half_precision,
)
from tertulia.methods.gfedntm.early_stopping import check_finite
from tertulia.methods.gfedntm.messages import (
    GRADIENT,
    LOSS,
    STATISTICS,
    GradientUpdate,
    MomentSums,
    NeuralTask,
    PartyMemory,
    SharedNorms,
    SlopeMeans,
    check_known,
    check_norms,
)
from tertulia.models.neural import sync_batch_norm
from tertulia.models.neural.bags import Batch, Noise

NOBODY = 1e-12  # the weight of an empty batch: should all be empty, the mean is a step of zero


@message
class BlockNorms:
    """Squared norms of blocks of a party's gradient; only their sum is revealed."""

    norms: fields.Statistic


@message
class ChosenBlocks:
    """The blocks of the gradient that all parties are to send."""

    norms: SharedNorms
    blocks: fields.Places


class _Found(NamedTuple):
    """The results of a party's mini-batch."""

    gradient: Array
    statistics: Array  # [2, 0] where the server has them already
    loss: float
    weight: float  # documents


@step(doing="normalising")
def sum_moments(party: Party, state: Any, ask: NeuralTask | SharedNorms) -> tuple[PartyMemory, MomentSums]:
    """Sum what makes the next norm's statistics: the encoder's, then the decoder's."""
    memory, norms = _recall(state, ask)
    task, batch, noise = _batch(party, memory)
    check_known(norms.statistics, 0, 1)
    values = sync_batch_norm.sum_moments(task.network, task.weights, batch, noise, norms.statistics)
    check_finite(values)
    return memory, MomentSums(party.release(values, STATISTICS), party.release(np.array(batch.size), DOCUMENTS))


@step(doing="normalising")
def sum_slopes(party: Party, state: Any, ask: SharedNorms) -> tuple[PartyMemory, SlopeMeans]:
    """Return a part of the mean slopes by which a norm's gradient goes on: the decoder's, then the encoder's."""
    memory, norms = _recall(state, ask)
    task, batch, noise = _batch(party, memory)
    check_known(norms.statistics, 2)
    check_known(norms.slopes, 0, 1)
    values = sync_batch_norm.slope_means(
        task.network, task.weights, batch, noise, norms.statistics, norms.slopes, norms.documents
    )
    check_finite(values)
    return memory, SlopeMeans(party.release(values, STATISTICS))


@step(doing="training")
def send_gradient(party: Party, state: Any, ask: NeuralTask | SharedNorms) -> tuple[PartyMemory, GradientUpdate]:
    """Send the gradient of one mini-batch at the current weights (Algorithm 1, getClientGrad)."""
    memory, norms = _recall(state, ask)
    found = _gradient(party, memory, norms)
    if memory.task.training.compression == "fp16":
        found = found._replace(gradient=to_half_precision(found.gradient, found.weight))
    return memory, _release(party, found)


@step(doing="measuring the gradient")
def sum_norms(party: Party, state: Any, ask: NeuralTask | SharedNorms) -> tuple[PartyMemory, BlockNorms]:
    """Measure how much each block of the gradient, with what was held back before, would move."""
    memory, norms = _recall(state, ask)
    found = _gradient(party, memory, norms)
    by_block = block_norms(found.weight * (found.gradient + memory.held_back))
    return memory, BlockNorms(party.release(by_block, GRADIENT))


@step(doing="training")
def send_blocks(party: Party, state: PartyMemory, ask: ChosenBlocks) -> tuple[PartyMemory, GradientUpdate]:
    """Send the chosen blocks of the gradient; the rest is held back for the next step."""
    memory, norms = _recall(state, ask.norms)
    found = _gradient(party, memory, norms)
    gradient = found.gradient
    check_blocks(gradient, ask.blocks)
    if found.weight > NOBODY:  # an empty batch has no say, and keeps what it holds
        gradient = gradient + memory.held_back
        memory = dataclasses.replace(memory, rest=clear_blocks(gradient, ask.blocks))
    return memory, _release(party, found._replace(gradient=select_blocks(gradient, ask.blocks)))


def _recall(state: Any, ask: NeuralTask | SharedNorms) -> tuple[PartyMemory, SharedNorms]:
    """Return the task and its norms. A new task brings weights; other questions continue this party's last task."""
    memory = state if isinstance(state, PartyMemory) else None
    if isinstance(ask, SharedNorms):
        if memory is None or memory.task.attempt != ask.attempt:
            raise Missed("it lacks this step's weights, as it missed the step's first question: it waits for the next")
        check_norms(memory.task.network, ask.statistics, ask.slopes)
        return memory, ask
    held = np.zeros(1, ask.weights.dtype)  # broadcasts: nothing yet
    if memory is not None:
        held = memory.held_back if memory.task.attempt in ask.given_up else memory.rest
        if held.shape not in ((1,), ask.weights.shape):
            raise FormatError("the weights are those of another network than the last: a run has only one")
    return PartyMemory(ask, held, held), unknown_norms(ask.attempt)


def unknown_norms(attempt: int) -> SharedNorms:
    """Return the norms before the first sum, or where no norm is shared."""
    return SharedNorms((), (), 0.0, attempt)


def _batch(party: Party, memory: PartyMemory) -> tuple[NeuralTask, Batch, Noise]:
    task = memory.task
    bags, _ = task.agreement.split(party)
    return task, task.schedule.batch(bags, task.step), Noise(task.seed, task.step)


def _gradient(party: Party, memory: PartyMemory, norms: SharedNorms) -> _Found:
    """Compute gradient, statistics, loss and size of this party's mini-batch."""
    task, batch, noise = _batch(party, memory)
    network = task.network
    if network.normalisation == "sync":
        check_known(norms.statistics, 2)
        check_known(norms.slopes, 2)
        flat, loss = sync_batch_norm.gradient(
            network, task.weights, batch, noise, norms.statistics, norms.slopes, norms.documents
        )
        statistics = np.zeros((2, 0), task.weights.dtype)
    else:
        flat, loss, statistics = network.gradient(task.weights, batch, noise)
    check_finite(flat, np.array(loss))
    documents = batch.size if batch.size >= network.min_batch else 0
    return _Found(flat, statistics, loss, float(documents) or NOBODY)


def _release(party: Party, found: _Found) -> GradientUpdate:
    return GradientUpdate(
        party.release(found.gradient, GRADIENT),
        party.release(found.statistics, STATISTICS),
        party.release(np.array(found.loss), LOSS),
        party.release(np.array(found.weight), DOCUMENTS),
    )
