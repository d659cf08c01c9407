"""Training on one machine, validation, and the rule that ends training.

Training takes mini-batches and Adam, and normalises by the statistics of the batch.

Convergence is judged by losses only, so a server can use the same rule. The loss of an epoch varies, more for a small
corpus. So means over a window of epochs are compared, and a gain below a thousandth counts as none: after that the
topics of ProdLDA hardly change.

Validation documents are scored like training documents: with the noise of training, which is the same for a document in
every epoch, and with norms by the statistics of the validation documents. Without noise, and with running statistics, a
decoder that has learned nothing would score best: it gives all words the same probability, which for short texts costs
less than a guess of their topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.models.neural import backprop, sync_batch_norm
from tertulia.models.neural.bags import Bags, Batch, Noise, Schedule
from tertulia.models.neural.network import Network
from tertulia.models.neural.optimiser import Adam, Moments

MOMENTUM = 0.1  # weight of a new batch in the running statistics
MOST_EPOCHS = 500  # if only convergence ends training
LEAST_GAIN = 1e-3  # as a share of the loss
_BATCH = 256  # validation documents scored together
_STEP = -1  # of the noise: no training step has it


class Progress(NamedTuple):
    """The state of training."""

    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running means and biased variances (over n; torch keeps those over n - 1)
    loss: float  # of a document, the mean over the steps taken
    moments: Moments | None = None  # of Adam; None: no step was taken

    @classmethod
    def initial(cls, network: Network, seed: int) -> Progress:
        """Return the state before the first step."""
        return cls(network.initial_weights(seed), network.initial_statistics(), 0.0)


def train(
    network: Network,
    start: Progress,
    bags: Bags,
    schedule: Schedule,
    steps: range,
    learning_rate: float,
    betas: tuple[float, float] = (0.99, 0.99),
) -> Progress:
    """Take some steps of Adam; skip batches that are too small to be normalised."""
    flat, running = start.weights.copy(), start.statistics.copy()
    weights = network.tensors(flat)  # they share memory with the array
    optimiser = Adam(network, flat, learning_rate, betas, start.moments)
    total, documents = 0.0, 0
    for step in steps:
        batch = schedule.batch(bags, step)
        if batch.size < network.min_batch:
            continue
        inputs = network.inputs(batch, Noise(schedule.seed, step))
        optimiser.catch_up(inputs.bow.by_word.words)
        loss, statistics, slopes = network.value(weights, inputs)
        optimiser.step(slopes, 1.0 / batch.size)
        if statistics is not None:
            running += MOMENTUM * (statistics - running)
        total, documents = total + loss, documents + batch.size
    optimiser.finish()
    if not np.isfinite(total):
        raise InputError("training has diverged (the loss is not finite): lower `learning_rate`")
    return Progress(flat, running, total / max(1, documents), optimiser.moments)


def has_stalled(losses: Sequence[float], window: int) -> bool:
    """Return whether the mean of the last `window` losses is less than a thousandth below that of the `window` before.

    >>> has_stalled([9.0, 8.0, 7.0, 6.0], 2), has_stalled([9.0, 8.0, 8.5, 8.499], 2)
    (False, True)
    """
    if len(losses) < 2 * window:
        return False
    last, before = sum(losses[-window:]), sum(losses[-2 * window : -window])
    return last > (1.0 - LEAST_GAIN) * before


class Pace(NamedTuple):
    """The speed and length of training."""

    epochs: int | None  # at most; None: until the loss stalls
    learning_rate: float
    betas: tuple[float, float] = (0.99, 0.99)
    stop_after: int = 20  # window of `has_stalled`, in epochs
    watch: Callable[[int, float], None] | None = None  # called after each epoch with the loss that decides


def validation_loss(network: Network, flat: Array, bags: Bags, seed: int) -> float:
    """Compute the mean training loss of validation documents."""
    known: tuple[Array, ...] = ()
    if network.normalisation != "layer":
        for _ in network.features:
            sums = validation_moments(network, flat, bags, seed, known)
            known = (*known, sync_batch_norm.statistics_of(sums, bags.n_documents))
    return loss_under(network, flat, bags, seed, known)


def validation_moments(network: Network, flat: Array, bags: Bags, seed: int, known: tuple[Array, ...]) -> Array:
    """Sum the inputs, and their squares, of the first norm with unknown statistics [2, F]; parties' sums add up."""
    noise, total = Noise(seed, _STEP), np.zeros((2, network.features[len(known)]))
    for batch in _batches(bags):
        total += sync_batch_norm.sum_moments(network, flat, batch, noise, known)
    return total


def loss_under(network: Network, flat: Array, bags: Bags, seed: int, known: tuple[Array, ...]) -> float:
    """Compute the mean loss of validation documents, given the statistics of both norms; LayerNorm needs none."""
    noise, weights, total = Noise(seed, _STEP), network.tensors(flat), 0.0
    for batch in _batches(bags):
        if known:  # the number of other parties' documents is not needed
            total += sync_batch_norm.loss(network, flat, batch, noise, known, np.inf)
        else:
            inputs = network.inputs(batch, noise)
            total += backprop.layer_norm_loss(network.model, weights, inputs, network.sizes)
    return total / max(1, bags.n_documents)


def _batches(bags: Bags) -> Iterator[Batch]:
    for start in range(0, bags.n_documents, _BATCH):
        yield bags.select(np.arange(start, min(start + _BATCH, bags.n_documents)))


def train_until(
    network: Network, start: Progress, bags: Bags, validation: Bags | None, schedule: Schedule, pace: Pace
) -> Progress:
    """Train for all epochs, or until the loss stalls.

    With validation documents, their loss decides when to stop, and the model with the lowest such loss is returned.
    """
    progress, best, losses = start, start, list[float]()
    for epoch in range(pace.epochs or MOST_EPOCHS):
        steps = range(epoch * schedule.batches, (epoch + 1) * schedule.batches)
        progress = train(network, progress, bags, schedule, steps, pace.learning_rate, pace.betas)
        loss = progress.loss
        if validation is not None:
            loss = validation_loss(network, progress.weights, validation, schedule.seed)
            best = best if losses and min(losses) <= loss else progress
        losses.append(loss)
        if pace.watch is not None:
            pace.watch(epoch + 1, loss)
        if (validation is not None or pace.epochs is None) and has_stalled(losses, pace.stop_after):
            break
    return progress if validation is None else best
