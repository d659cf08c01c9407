"""BatchNorm whose statistics are everybody's, in five steps that each recompute the forward pass.

A batch is spread over parties. The total loss L depends on the weights directly, and through the statistics s1 of the
encoder and s2 of the decoder, which are sums over all parties. By the chain rule a party's part of the gradient is that
of its own loss with s1 and s2 held fixed, plus that of (dL/ds) s, in which dL/ds is again a sum over parties:

    moments(0)  ->  s1          moments(1)  ->  s2
    adjoint(1)  ->  dL/ds2      adjoint(0)  ->  dL/ds1      gradient  ->  dL/dW

So nothing but sums needs to cross, and no party keeps a graph between two steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import Array
from tertulia.models.neural import prodlda
from tertulia.models.neural.bags import Batch, Noise
from tertulia.models.neural.network import Network, flattened, given_norm


class Shared(NamedTuple):
    """What is known of all parties' batches together."""

    documents: float  # n
    statistics: tuple[Array, ...]  # [2, F] mean and variance of each norm that is known so far
    adjoints: tuple[Array, ...] = ()  # [2, F] dL/ds, decoder first


class _Pass(NamedTuple):
    """A forward pass as far as statistics are known."""

    raw: list[Tensor]  # what enters each norm
    statistics: list[Tensor]
    loss: Tensor | None


def _forward(network: Network, weights: prodlda.Weights, batch: Batch, noise: Noise, shared: Shared) -> _Pass:
    inputs = network.inputs(batch, noise)
    known = [torch.as_tensor(s, dtype=network.dtype).requires_grad_() for s in shared.statistics]
    norm = given_norm(known)
    raw = [network.encode(weights, inputs)]
    if len(known) < 1:
        return _Pass(raw, known, None)
    theta, kl = prodlda.sample(weights, inputs, norm(0, raw[0]), network.sizes)
    raw.append(theta @ weights["beta"])
    if len(known) < 2:
        return _Pass(raw, known, None)
    return _Pass(raw, known, (kl + prodlda.score(norm(1, raw[1]), inputs)).sum())


def moments(network: Network, flat: Array, batch: Batch, noise: Noise, shared: Shared) -> Array:
    """Sums and sums of squares of what enters the first norm whose statistics are not known: [2, F], in float64."""
    if batch.size == 0:
        return np.zeros((2, network.features[len(shared.statistics)]))
    with torch.no_grad():
        raw = _forward(network, network.tensors(flat), batch, noise, shared).raw[-1].double()
    return torch.stack((raw.sum(dim=0), raw.square().sum(dim=0))).numpy()


def statistics(sums: Array, documents: float) -> Array:
    """Mean and variance [2, F] from everybody's moments."""
    mean, square = sums / max(documents, 1.0)
    return np.stack((mean, np.maximum(square - mean**2, 0.0)))


def adjoint(network: Network, flat: Array, batch: Batch, noise: Noise, shared: Shared) -> Array:
    """A party's part of dL/ds, [2, F]: of the decoder's statistics, then of the encoder's."""
    layer = 1 - len(shared.adjoints)
    if batch.size == 0:
        return np.zeros((2, network.features[layer]))
    found = _forward(network, network.tensors(flat), batch, noise, shared)
    (part,) = torch.autograd.grad(_objective(found, shared), found.statistics[layer])
    return part.double().numpy()


def gradient(network: Network, flat: Array, batch: Batch, noise: Noise, shared: Shared) -> tuple[Array, float]:
    """A party's gradient and loss, both divided by its own documents."""
    if batch.size == 0:
        return np.zeros_like(flat), 0.0
    weights = {name: weight.requires_grad_() for name, weight in network.tensors(flat).items()}
    found = _forward(network, weights, batch, noise, shared)
    assert found.loss is not None
    parts = torch.autograd.grad(_objective(found, shared) / batch.size, list(weights.values()))
    return flattened(parts), found.loss.item() / batch.size


def _objective(found: _Pass, shared: Shared) -> Tensor:
    """The loss, and for each norm whose dL/ds is known the part of the loss that goes through its statistics."""
    assert found.loss is not None
    total = found.loss
    for layer, given in zip((1, 0), shared.adjoints, strict=False):
        raw, mean = found.raw[layer], found.statistics[layer].detach()[0]
        slope = torch.as_tensor(given, dtype=raw.dtype) / shared.documents
        total = total + (slope[0] * raw.sum(dim=0)).sum() + (slope[1] * (raw - mean).square().sum(dim=0)).sum()
    return total
