"""gFedNTM: federated neural topic models (Calvo-Bartolomé, Arenas-García and colleagues, 2022).

Stage 1 is vocabulary consensus. In stage 2, SyncOpt, every party sends the gradient of one mini-batch at the current
weights, the server averages them by mini-batch size (2) and takes an optimiser's step (3), until the weights stall or a
limit is reached. The paper says that this equals training in one place. It does if BatchNorm's statistics are those of
all: `normalisation = "sync"` sums them in four more questions a step; "batch" leaves them to parties, "layer" has none.
All questions of a step go to the same parties (`attempts`), and name the attempt that they belong to.

The paper's early stopping holds out a quarter of the documents (`validation = 0.25`); without, all of them train.

Departures: FedAvg and FedAdam (`averaging`) for networks on which thousands of tiny rounds are too slow; Adam at the
server. A gradient is no protection: a batch's words can be read off it, and documents reconstructed (docs/gfedntm.md).
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import Missed
from tertulia.federation.types import Federation, Party, Planned, Step, message, step
from tertulia.methods.common.result import Trained
from tertulia.methods.common.vocabulary import plan_vocabulary, propose_words
from tertulia.methods.gfedntm.attempts import Attempt, attempted
from tertulia.methods.gfedntm.averaging import average_rounds, train_alone, train_locally
from tertulia.methods.gfedntm.compression import block_norms, halved, largest, spread, taken, without
from tertulia.methods.gfedntm.limits import check_finite, ends_epoch, finished, with_loss
from tertulia.methods.gfedntm.messages import (
    Known,
    Memory,
    Slopes,
    State,
    Sums,
    Task,
    Update,
    begin,
    count_documents,
    result,
    result_alone,
    task_of,
)  # fmt: skip
from tertulia.methods.gfedntm.optimisers import stepped
from tertulia.methods.gfedntm.stopping import checked, plan_validation, sum_validation, validate
from tertulia.methods.gfedntm.terms import (
    DOCUMENTS,
    GRADIENT,
    LOSS,
    MOMENTS,
    SIZES,
    STATISTICS,
    WEIGHTS,
    NeuralTerms,
    normalisation_of,
)  # fmt: skip
from tertulia.methods.gfedntm.topic_sizes import measured, sum_sizes
from tertulia.models.neural import synchronised
from tertulia.models.neural.bags import Batch, Noise
from tertulia.models.neural.convergence import MOST_EPOCHS
from tertulia.models.neural.network import Network
from tertulia.models.neural.training import MOMENTUM

NOBODY = 1e-12  # the weight of an empty batch: should all be empty, the mean is a step of zero


@message
class Norms:
    """Squared norms of blocks of a party's gradient; only their sum is revealed."""

    norms: Array


@message
class Chosen:
    """Which blocks of the gradient all parties are to send."""

    known: Known
    blocks: Array


# --- at a party -------------------------------------------------------------------------------------------------------


@step
def sum_moments(party: Party, state: Any, ask: Task | Known) -> tuple[Memory, Sums]:
    """Sums that make the next norm's statistics: the encoder's, then the decoder's."""
    memory, known = _remembered(state, ask)
    network, weights, batch, noise = _batch(party, memory)
    values = synchronised.sum_moments(network, weights, batch, noise, known.statistics)
    return memory, Sums(party.release(values, STATISTICS), party.release(np.array(batch.size), DOCUMENTS))


@step
def sum_slopes(party: Party, state: Any, ask: Known) -> tuple[Memory, Slopes]:
    """Sums that make the loss's slope in a norm's statistics: the decoder's, then the encoder's."""
    memory, known = _remembered(state, ask)
    network, weights, batch, noise = _batch(party, memory)
    values = synchronised.slope_means(network, weights, batch, noise, known.statistics, known.slopes, known.documents)
    return memory, Slopes(party.release(values, STATISTICS))


@step
def send_gradient(party: Party, state: Any, ask: Task | Known) -> tuple[Memory, Update]:
    """Algorithm 1, getClientGrad: the gradient of one mini-batch at the current weights."""
    memory, known = _remembered(state, ask)
    flat, statistics, loss, n = _gradient(party, memory, known)
    if memory.task.compression == "fp16":
        flat = halved(flat, n)
    return memory, _update(party, flat, statistics, loss, n)


@step
def sum_norms(party: Party, state: Any, ask: Task | Known) -> tuple[Memory, Norms]:
    """How much each block of the gradient, with what was held back before, would move."""
    memory, known = _remembered(state, ask)
    flat, _, _, n = _gradient(party, memory, known)
    return memory, Norms(party.release(block_norms(n * (flat + memory.held_back)), GRADIENT))


@step
def send_blocks(party: Party, state: Memory, ask: Chosen) -> tuple[Memory, Update]:
    """The chosen blocks of the gradient; the rest is held back for the next step."""
    memory, known = _remembered(state, ask.known)
    flat, statistics, loss, n = _gradient(party, memory, known)
    if n > NOBODY:  # an empty batch has no say, and keeps what it holds
        flat = flat + memory.held_back
        memory = dataclasses.replace(memory, rest=without(flat, ask.blocks))
    return memory, _update(party, taken(flat, ask.blocks), statistics, loss, n)


def _remembered(state: Any, ask: Task | Known) -> tuple[Memory, Known]:
    """What is asked may be a new task, with weights, or go on with the one before, if this party has that one."""
    memory = state if isinstance(state, Memory) else None
    if isinstance(ask, Known):
        if memory is None or memory.task.attempt != ask.attempt:
            raise Missed("it lacks this step's weights, as it missed the step's first question: it waits for the next")
        return memory, ask
    held = np.zeros(1, ask.weights.dtype)  # broadcasts: nothing yet
    if memory is not None:
        held = memory.held_back if memory.task.attempt in ask.given_up else memory.rest
    return Memory(ask, held, held), _nothing_known(ask.attempt)


def _nothing_known(attempt: int) -> Known:
    return Known((), (), 0.0, attempt)


def _batch(party: Party, memory: Memory) -> tuple[Network, Array, Batch, Noise]:
    task = memory.task
    batch = task.schedule.batch(task.bags(party), task.step)
    return task.network, task.weights, batch, Noise(task.seed, task.step)


def _gradient(party: Party, memory: Memory, known: Known) -> tuple[Array, Array, float, float]:
    """Gradient, statistics, loss and size of this party's mini-batch."""
    network, weights, batch, noise = _batch(party, memory)
    if network.normalisation == "sync":
        flat, loss = synchronised.gradient(
            network, weights, batch, noise, known.statistics, known.slopes, known.documents
        )
        statistics = np.zeros((2, 0), weights.dtype)  # the server has them already
    else:
        flat, loss, statistics = network.gradient(weights, batch, noise)
    check_finite(flat, np.array(loss))
    return flat, statistics, loss, float(batch.size if batch.size >= network.least else 0) or NOBODY


def _update(party: Party, flat: Array, statistics: Array, loss: float, n: float) -> Update:
    return Update(
        party.release(flat, GRADIENT),
        party.release(statistics, STATISTICS),
        party.release(np.array(loss), LOSS),
        party.release(np.array(n), DOCUMENTS),
    )


# --- at the server ----------------------------------------------------------------------------------------------------


STEPS = (
    propose_words, count_documents, sum_moments, sum_slopes, send_gradient, sum_norms, send_blocks, train_locally,
    train_alone, sum_validation, validate, sum_sizes,
)  # fmt: skip


def train(fed: Federation, config: NeuralTerms, state: State | None = None) -> Trained:
    """Algorithm 1, at the server."""
    if state is None:
        state = fed.commit(begin(fed, config))  # stage 1
    if config.scenario == "alone":
        return result_alone(config, state.words, fed.each(train_alone, task_of(config, state)))
    if config.averaging != "syncopt":
        return result(config, average_rounds(fed, config, state))
    while not finished(config, state):  # stage 2
        (gradient, statistics, loss), attempt = attempted(fed, state.attempt, partial(_averaged, config, state))
        state = with_loss(config, _moved(config, state, gradient, statistics, attempt), loss)
        told = {"loss": loss}
        if config.validation and ends_epoch(config, state):
            state, told["validation"] = checked(fed, config, state)
        if finished(config, state):
            state = measured(fed, config, state)
        state = fed.commit(state, durable=config.checkpoint_every, **told)
    return result(config, state)


def _averaged(config: NeuralTerms, state: State, fed: Attempt) -> tuple[Array, Array, float]:
    """The mean gradient of all parties' mini-batches (2), the batch's statistics, and its loss."""
    task = task_of(config, state, fed.number)
    ask: Task | Known = task
    if task.network.normalisation == "sync":
        ask = _synchronised(fed, task)
    if config.compression == "topk":
        blocks = largest(fed.sum(sum_norms, ask).norms, config.keep)
        known = ask if isinstance(ask, Known) else _nothing_known(fed.number)
        update = fed.mean(send_blocks, Chosen(known, blocks))
        gradient = spread(update.flat, blocks, len(state.weights))
    else:
        update = fed.mean(send_gradient, ask)
        gradient = update.flat
    own = np.concatenate(ask.statistics, axis=1) if isinstance(ask, Known) else update.statistics
    return gradient, own, float(update.loss)


def _synchronised(fed: Attempt, task: Task) -> Known:
    """Everybody's statistics, and the loss's slopes in them: four sums."""
    known = _nothing_known(task.attempt)
    for ask in (task, None):
        sums = fed.sum(sum_moments, ask or known)
        found = synchronised.statistics_of(sums.values, float(sums.documents))
        known = Known((*known.statistics, found), (), float(sums.documents), task.attempt)
    for _ in range(2):
        slopes = fed.sum(sum_slopes, known).values
        known = dataclasses.replace(known, slopes=(*known.slopes, slopes))
    return known


def _moved(config: NeuralTerms, state: State, gradient: Array, statistics: Array, attempt: int) -> State:
    """One step of the server's optimiser (3), and how little the weights moved."""
    weights, moments = stepped(
        state.weights, gradient, state.moments, config.optimiser, config.learning_rate, config.betas
    )
    check_finite(weights)
    change = np.linalg.norm(weights - state.weights) / max(float(np.linalg.norm(state.weights)), 1e-30)
    running = state.statistics + MOMENTUM * (statistics - state.statistics)
    calm = state.calm + 1 if change < config.tolerance else 0
    return dataclasses.replace(
        state, step=state.step + 1, weights=weights, statistics=running.astype(weights.dtype), moments=moments,
        calm=calm, attempt=attempt, given_up=(*state.given_up, *range(state.attempt + 1, attempt)),
    )  # fmt: skip


def plan(config: NeuralTerms) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`; the number of steps is known when documents are."""
    told = [*plan_vocabulary(config.vocabulary), Planned(count_documents, "sum", DOCUMENTS, 1)]
    if config.scenario == "alone":
        return [*told, *(Planned(train_alone, "each", how, 1) for how in (WEIGHTS, STATISTICS, SIZES))]
    told += [Planned(sum_sizes, "sum", SIZES, 1)]
    times, common = config.rounds or config.epochs or MOST_EPOCHS, (STATISTICS, LOSS, DOCUMENTS)
    told += plan_validation(config, times)
    if config.averaging != "syncopt":
        moments = (MOMENTS,) if config.local_moments == "averaged" else ()
        return [*told, *(Planned(train_locally, "mean", how, times) for how in (WEIGHTS, *moments, *common))]
    if normalisation_of(config) == "sync":
        told += [Planned(sum_moments, "sum", how, 2 * times) for how in (STATISTICS, DOCUMENTS)]
        told += [Planned(sum_slopes, "sum", STATISTICS, 2 * times)]
    last: Step = send_gradient
    if config.compression == "topk":
        told += [Planned(sum_norms, "sum", GRADIENT, times)]
        last = send_blocks
    return [*told, *(Planned(last, "mean", how, times) for how in (GRADIENT, *common))]
