"""Training on one machine: mini-batches by Adam, with the batch's own statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tertulia.arrays import Array
from tertulia.errors import InputError
from tertulia.models.bags import Bags, Noise, Schedule
from tertulia.models.network import Network

MOMENTUM = 0.1  # of running statistics: how much a new batch counts


class Remembered(NamedTuple):
    """What Adam remembers of gradients."""

    first: Array  # flat, as the weights
    second: Array
    steps: int


class Progress(NamedTuple):
    """Where training has come to."""

    weights: Array  # flat
    statistics: Array  # [2, 2K + V] running means and variances
    loss: float  # mean a document, over the steps taken
    adam: Remembered | None = None  # None: nothing yet


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
    optimiser = torch.optim.Adam(list(weights.values()), learning_rate, betas, fused=True)
    before = start.adam or Remembered(np.zeros_like(flat), np.zeros_like(flat), 0)
    first, second, taken = before.first.copy(), before.second.copy(), before.steps
    for weight, m, v in zip(weights.values(), *(network.named(a).values() for a in (first, second)), strict=True):
        state = {"exp_avg": torch.from_numpy(m), "exp_avg_sq": torch.from_numpy(v)}  # likewise
        optimiser.state[weight] = {"step": torch.tensor(float(taken)), **state}
    total, documents = 0.0, 0
    for step in steps:
        batch = schedule.batch(bags, step)
        if batch.size < network.least:
            continue
        loss, statistics = network.loss(weights, network.inputs(batch, Noise(schedule.seed, step)))
        optimiser.zero_grad()
        (loss / batch.size).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        taken += 1
        running += MOMENTUM * (statistics - running)
        total, documents = total + loss.item(), documents + batch.size
    if not np.isfinite(total):
        raise InputError("training has diverged (the loss is not finite): lower `learning_rate`")
    return Progress(flat, running, total / max(1, documents), Remembered(first, second, taken))
