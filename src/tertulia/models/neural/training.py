"""Training on one machine: mini-batches by Adam, with the batch's own statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import InputError
from tertulia.models.neural.bags import Bags, Noise, Schedule
from tertulia.models.neural.network import Network
from tertulia.models.neural.optimiser import Adam, Moments

MOMENTUM = 0.1  # of running statistics: how much a new batch counts


class Progress(NamedTuple):
    """Where training has come to."""

    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running means and variances, these biased: over n, not n - 1 as torch keeps them
    loss: float  # of a document, the mean over the steps taken
    moments: Moments | None = None  # of Adam; None: no step was taken

    @classmethod
    def initial(cls, network: Network, seed: int) -> Progress:
        """Before the first step."""
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
    """Take some steps of Adam; a batch too small to be normalised is passed over."""
    flat, running = start.weights.copy(), start.statistics.copy()
    weights = network.tensors(flat)  # they share the array's memory
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
