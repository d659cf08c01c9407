"""gFedNTM: federated neural topic models (Calvo-Bartolomé, Arenas-García and colleagues, 2022).

Stage 1 is vocabulary consensus. In stage 2, SyncOpt, every party sends the gradient of one mini-batch at the current
weights, the server averages them by mini-batch size (2) and takes an optimiser's step (3), until the weights stall or a
limit is reached. The paper says that this equals training in one place. It does if BatchNorm's statistics are those of
all: `normalisation = "sync"` sums them in four more questions per step; "batch" leaves them to parties, "layer" has
none. All questions of a step go to the same parties (`attempts`), and name the attempt that they belong to.

The paper's early stopping holds out a quarter of the documents (`validation = 0.25`); without, all of them train.

Departures: FedAvg and FedAdam (`averaging`) for networks on which thousands of tiny rounds are too slow; Adam at the
server. A gradient is no protection: a batch's words can be read off it, and documents reconstructed (docs/gfedntm.md).
Mode `doc` clips gradients of single documents and adds noise (`private`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.federation.types import Federation, Planned, Step
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_until
from tertulia.methods.common.vocabulary import DOCUMENTS, WORD_STEPS, plan_vocabulary
from tertulia.methods.gfedntm.agreement import begin, count_documents
from tertulia.methods.gfedntm.attempts import Attempt, with_one_set
from tertulia.methods.gfedntm.averaging import averaging_round, descend, train_alone, train_locally
from tertulia.methods.gfedntm.compression import largest_blocks, place_blocks
from tertulia.methods.gfedntm.early_stopping import (
    add_loss,
    check_finite,
    is_finished,
    plan_validation,
    sum_validation,
    validate,
    validate_epoch,
)
from tertulia.methods.gfedntm.gradients import (
    ChosenBlocks,
    send_blocks,
    send_gradient,
    sum_moments,
    sum_norms,
    sum_slopes,
    unknown_norms,
)
from tertulia.methods.gfedntm.messages import (
    GRADIENT,
    LOSS,
    MOMENTS,
    SIZES,
    STATISTICS,
    WEIGHTS,
    NeuralState,
    NeuralTask,
    SharedNorms,
    task_of,
)
from tertulia.methods.gfedntm.private import plan_private, private_round, send_noisy_sum
from tertulia.methods.gfedntm.results import measure_topics, own_models, shared_model, sum_sizes
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.models import Topics
from tertulia.models.neural.optimiser import Moments
from tertulia.models.neural.sync_batch_norm import statistics_of
from tertulia.models.neural.training import MOMENTUM, MOST_EPOCHS

STEPS = (
    *WORD_STEPS, count_documents, sum_moments, sum_slopes, send_gradient, sum_norms, send_blocks, train_locally,
    train_alone, sum_validation, validate, sum_sizes, send_noisy_sum,
)  # fmt: skip


def train(fed: Federation, config: GFedNTMSettings, state: NeuralState | None = None) -> Trained:
    """Run Algorithm 1 at the server."""
    if state is None:
        state = fed.commit(begin(fed, config))  # stage 1
    if config.scenario == "alone":
        return own_models(config, state, fed.each(train_alone, task_of(config, state)))
    callbacks = [partial(validate_epoch, config), partial(measure_topics, config)]
    finished, one_round = partial(is_finished, config), partial(_round_of(config), fed, config)
    state = run_until(fed, finished, state, one_round, callbacks, durable=config.checkpoint_every)  # stage 2
    return shared_model(config, state)


def _round_of(config: GFedNTMSettings) -> Callable[..., tuple[NeuralState, Metrics]]:
    """Return the function that takes one round."""
    if config.mode == "doc":
        return private_round
    return synchronous_round if config.averaging == "syncopt" else averaging_round


def continue_from(fed: Federation, config: GFedNTMSettings, last: Topics) -> NeuralState:
    """Begin with an earlier model's weights instead; those of new words are as ever."""
    return begin(fed, config, last)


def synchronous_round(fed: Federation, config: GFedNTMSettings, state: NeuralState) -> tuple[NeuralState, Metrics]:
    """Take one step of SyncOpt along the mean gradient of all parties' mini-batches."""
    mean, attempt = with_one_set(fed, state.attempt, partial(mean_gradient, config, state))
    return add_loss(config, apply_gradient(config, state, mean, attempt), mean.loss), {"loss": mean.loss}


class MeanGradient(NamedTuple):
    """The mean over all parties' mini-batches."""

    gradient: Array
    statistics: Array  # [2, 2K + V] of both norms
    loss: float


def mean_gradient(config: GFedNTMSettings, state: NeuralState, fed: Attempt) -> MeanGradient:
    """Compute the mean gradient of all parties' mini-batches, weighted by their sizes (2)."""
    task = task_of(config, state, fed.number)
    if fed.secure:  # totals of one batch with and without a party would show its part: a new attempt, another batch
        task = dataclasses.replace(task, step=fed.number - 1)  # equals `state.step` until an attempt was given up
    norms = synchronise_norms(fed, task) if config.norm == "sync" else None
    ask = task if norms is None else norms
    if config.paper.keep is None:
        update = fed.mean(send_gradient, ask)
        gradient = update.gradient
    else:
        blocks = largest_blocks(fed.sum(sum_norms, ask).norms, config.paper.keep)
        update = fed.mean(send_blocks, ChosenBlocks(norms or unknown_norms(fed.number), blocks))
        gradient = place_blocks(update.gradient, blocks, len(state.weights))
    statistics = update.statistics if norms is None else np.concatenate(norms.statistics, axis=1)
    return MeanGradient(gradient, statistics, float(update.loss))


def synchronise_norms(fed: Attempt, task: NeuralTask) -> SharedNorms:
    """Sum all parties' statistics, and the mean slopes by which gradients go through them: four sums."""
    norms = unknown_norms(task.attempt)
    for ask in (task, None):
        sums = fed.sum(sum_moments, ask or norms)
        documents = float(sums.documents)
        found = statistics_of(sums.values, documents)
        check_finite(found)
        norms = SharedNorms((*norms.statistics, found), (), documents, task.attempt)
    for _ in range(2):
        slopes = fed.sum(sum_slopes, norms).values
        check_finite(slopes)
        norms = dataclasses.replace(norms, slopes=(*norms.slopes, slopes))
    return norms


def apply_gradient(config: GFedNTMSettings, state: NeuralState, mean: MeanGradient, attempt: int) -> NeuralState:
    """Take one step of the server's optimiser (3), and measure how little the weights moved."""
    weights, moments = descend(config, state.weights, mean.gradient, Moments(state.moments, state.step))
    check_finite(weights)
    change = np.linalg.norm(weights - state.weights) / max(float(np.linalg.norm(state.weights)), 1e-30)
    running = state.statistics + MOMENTUM * (mean.statistics - state.statistics)
    return dataclasses.replace(
        state, step=state.step + 1, weights=weights, statistics=running.astype(weights.dtype), moments=moments,
        calm=state.calm + 1 if change < config.tolerance else 0,
        attempt=attempt, given_up=(*state.given_up, *range(state.attempt + 1, attempt)),
    )  # fmt: skip


def plan(config: GFedNTMSettings) -> list[Planned]:
    """List what will leave a party, for `tertulia check`; the number of steps is known once documents are counted."""
    if config.mode == "doc":
        return [*plan_vocabulary(config.vocabulary), *plan_private(config)]
    first = [*plan_vocabulary(config.vocabulary), Planned(count_documents, "sum", DOCUMENTS, 1)]
    if config.scenario == "alone":
        return [*first, *(Planned(train_alone, "each", how, 1) for how in (WEIGHTS, STATISTICS, SIZES))]
    times = config.rounds or config.epochs or MOST_EPOCHS  # without rounds: of epochs, which have several rounds
    rounds = _plan_synchronous(config, times) if config.averaging == "syncopt" else _plan_averaging(config, times)
    sizes = Planned(sum_sizes, "sum", SIZES, 1)
    most = [one._replace(most=_most(config, one)) for one in (*plan_validation(config, times), *rounds)]
    return [*first, sizes, *most]


def _most(config: GFedNTMSettings, planned: Planned) -> int | None:
    """Return the limit: a step begins again when a party drops out in it, and after a crash from the last commit."""
    return None if config.rounds is None else 2 * planned.times


def _plan_averaging(config: GFedNTMSettings, times: int) -> list[Planned]:
    moments = (MOMENTS,) if config.local_moments == "averaged" else ()
    leaving = (WEIGHTS, *moments, STATISTICS, LOSS, DOCUMENTS)
    return [Planned(train_locally, "mean", how, times) for how in leaving]


def _plan_synchronous(config: GFedNTMSettings, times: int) -> list[Planned]:
    planned = []
    if config.norm == "sync":
        planned += [Planned(sum_moments, "sum", how, 2 * times) for how in (STATISTICS, DOCUMENTS)]
        planned += [Planned(sum_slopes, "sum", STATISTICS, 2 * times)]
    last: Step = send_gradient
    if config.paper.keep is not None:
        planned += [Planned(sum_norms, "sum", GRADIENT, times)]
        last = send_blocks
    return [*planned, *(Planned(last, "mean", how, times) for how in (GRADIENT, STATISTICS, LOSS, DOCUMENTS))]


def topics_so_far(config: GFedNTMSettings, state: NeuralState) -> TopicsSoFar:
    """The topics of the network as it is."""
    topics = shared_model(config, state).topics
    return TopicsSoFar(state.words, topics.topic_word, topics.weights)
