"""Early stopping: documents that take no part in training tell when it no longer helps."""

from __future__ import annotations

import numpy as np
import torch

from tertulia.arrays import Array
from tertulia.models.bags import Bags, Schedule
from tertulia.models.network import Network, given_norm, layer_norm
from tertulia.models.training import Progress, train

_BATCH = 256


def loss_of(network: Network, flat: Array, statistics: Array, bags: Bags) -> float:
    """The mean loss of documents as a finished model sees them: nothing is dropped or drawn, norms are the running."""
    norm = layer_norm if network.normalisation == "layer" else given_norm(network.split(statistics))
    total = 0.0
    with torch.inference_mode():
        weights = {name: torch.from_numpy(part) for name, part in network.named(flat).items()}
        for start in range(0, bags.n_documents, _BATCH):
            batch = bags.select(np.arange(start, min(start + _BATCH, bags.n_documents)))
            total += float(network.losses(weights, network.inputs(batch, None), norm).sum())
    return total / max(1, bags.n_documents)


def train_until(
    network: Network,
    start: Progress,
    bags: Bags,
    validation: Bags | None,
    schedule: Schedule,
    epochs: int,
    learning_rate: float,
    betas: tuple[float, float],
    stop_after: int,
) -> Progress:
    """Train for some epochs, fewer if the validation loss has not improved for `stop_after`; the best is returned."""
    if validation is None:
        return train(network, start, bags, schedule, range(epochs * schedule.batches), learning_rate, betas)
    progress, best, least, waited = start, start, np.inf, 0
    for epoch in range(epochs):
        steps = range(epoch * schedule.batches, (epoch + 1) * schedule.batches)
        progress = train(network, progress, bags, schedule, steps, learning_rate, betas)
        loss = loss_of(network, progress.weights, progress.statistics, validation)
        waited = 0 if loss < least else waited + 1
        if waited == 0:
            best, least = progress, loss
        if waited >= stop_after:
            break
    return best
