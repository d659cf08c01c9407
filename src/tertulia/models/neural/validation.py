"""How long to train: until documents that take no part in it, or without such the training's own loss, say enough.

Validation documents are scored as training documents are: with the noise of training, which is a document's own and the
same in every epoch, and with norms by the statistics of these very documents. As a finished model sees them (nothing
drawn, running statistics) a decoder that has learned nothing would win: it finds all words alike, and for short texts
that costs less than to say what they are about. Noise that the norm amplifies leaves it no such way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.models.neural import backprop, synchronised
from tertulia.models.neural.bags import Bags, Batch, Noise, Schedule
from tertulia.models.neural.convergence import MOST_EPOCHS, has_stalled
from tertulia.models.neural.network import Network
from tertulia.models.neural.training import Progress, train

_BATCH = 256
_STEP = -1  # of the noise: no step of training has it


class Pace(NamedTuple):
    """How fast to train, and how long."""

    epochs: int | None  # at most; None: until the loss stalls
    learning_rate: float
    betas: tuple[float, float] = (0.99, 0.99)
    stop_after: int = 20  # epochs whose loss is compared with that of as many before
    watch: Callable[[int, float], None] | None = None  # called after each epoch, with the loss that counts


def validation_loss(network: Network, flat: Array, bags: Bags, seed: int) -> float:
    """The mean training loss of documents on which nobody trained."""
    known: tuple[Array, ...] = ()
    if network.normalisation != "layer":
        for _ in network.features:
            sums = validation_moments(network, flat, bags, seed, known)
            known = (*known, synchronised.statistics_of(sums, bags.n_documents))
    return loss_under(network, flat, bags, seed, known)


def validation_moments(network: Network, flat: Array, bags: Bags, seed: int, known: tuple[Array, ...]) -> Array:
    """Sums and sums of squares [2, F] of what enters the first norm whose statistics are not known; parties' add up."""
    noise, total = Noise(seed, _STEP), np.zeros((2, network.features[len(known)]))
    for batch in _batches(bags):
        total += synchronised.sum_moments(network, flat, batch, noise, known)
    return total


def loss_under(network: Network, flat: Array, bags: Bags, seed: int, known: tuple[Array, ...]) -> float:
    """The mean loss of validation documents under given statistics of both norms; LayerNorm needs none."""
    noise, weights, total = Noise(seed, _STEP), network.tensors(flat), 0.0
    for batch in _batches(bags):
        if known:  # over any number of documents: others' are not known here
            total += synchronised.loss(network, flat, batch, noise, known, np.inf)
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
    """Train for all epochs, or until the loss stalls; with validation documents the model that they like best is kept.

    Their loss is then the one that counts, however many epochs are allowed.
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
