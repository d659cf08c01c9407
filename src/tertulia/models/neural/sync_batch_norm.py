"""BatchNorm with statistics over all parties, in five questions; each repeats the forward pass.

A batch is spread over parties. The statistics s1 of the encoder and s2 of the decoder are sums over all documents. So
are m2 and m1, the means of slopes that the gradient of BatchNorm needs (`kernels.neural.norms`):

    sum_moments  ->  s1          sum_moments  ->  s2
    slope_means  ->  m2          slope_means  ->  m1          gradient  ->  dL/dW

So parties send only sums, and keep nothing between two questions.
"""

from __future__ import annotations

import numpy as np
import torch

from tertulia._arrays import Array
from tertulia.models.neural.backprop import BatchNorm, BatchNormDecoder, EncoderPass, SharedStatistics, ThetaDraw
from tertulia.models.neural.bags import Batch, Noise
from tertulia.models.neural.network import Network, flatten


class _Forward:
    """A forward pass up to the decoder's norm, under the encoder's shared statistics."""

    def __init__(self, network: Network, flat: Array, batch: Batch, noise: Noise, statistics: Array, n: float) -> None:
        weights, inputs = network.tensors(flat), network.inputs(batch, noise)
        self.beta, self.bow, self.documents = weights["beta"], inputs.bow, n
        self.encoder = EncoderPass(network.model, weights, inputs)
        self.norm = BatchNorm(self.encoder.raw, SharedStatistics(statistics.astype(network.precision), n))
        self.draw = ThetaDraw(weights, inputs, network.sizes, self.norm.normed)
        self.theta, self.kl = self.draw.drawn.theta, self.draw.drawn.kl

    def decode(self, statistics: Array) -> BatchNormDecoder:
        """Score the words under the decoder's shared statistics."""
        known = SharedStatistics(statistics.astype(self.theta.dtype), self.documents)
        return BatchNormDecoder(self.theta, self.beta, self.bow, known)


@torch.no_grad()
def sum_moments(network: Network, flat: Array, batch: Batch, noise: Noise, statistics: tuple[Array, ...]) -> Array:
    """Sum the inputs, and their squares, of the first norm with unknown statistics: [2, F], in float64."""
    if batch.size == 0:
        return np.zeros((2, network.features[len(statistics)]))
    if not statistics:
        raw = EncoderPass(network.model, network.tensors(flat), network.inputs(batch, noise)).raw.astype(np.float64)
        return np.stack((raw.sum(axis=0), (raw**2).sum(axis=0)))
    forward = _Forward(network, flat, batch, noise, statistics[0], 0.0)
    theta, beta = torch.from_numpy(forward.theta).double(), forward.beta.double()
    squares = ((theta.T @ theta) @ beta).mul_(beta).sum(dim=0)  # of theta beta, by K x K numbers
    return torch.stack((theta.sum(dim=0) @ beta, squares)).numpy()


def statistics_of(sums: Array, documents: float) -> Array:
    """Compute mean and variance [2, F] from the moments of all parties."""
    mean, square = sums / max(documents, 1.0)
    return np.stack((mean, np.maximum(square - mean**2, 0.0)))


@torch.no_grad()
def slope_means(
    network: Network, flat: Array, batch: Batch, noise: Noise, statistics: tuple[Array, ...], means: tuple[Array, ...],
    documents: float,
) -> Array:  # fmt: skip
    """Compute a party's part of the mean slopes [2, F] over all parties: of the decoder, then of the encoder."""
    if batch.size == 0:
        return np.zeros((2, network.features[1 - len(means)]))
    forward = _Forward(network, flat, batch, noise, statistics[0], documents)
    decoder = forward.decode(statistics[1])
    if not means:
        return decoder.slope_means(documents).astype(np.float64)
    by_theta, _ = decoder.back(means[0].astype(network.precision))
    slopes, _ = forward.draw.back(by_theta)
    return forward.norm.slope_means(slopes, documents).astype(np.float64)


@torch.no_grad()
def gradient(
    network: Network, flat: Array, batch: Batch, noise: Noise, statistics: tuple[Array, ...], means: tuple[Array, ...],
    documents: float,
) -> tuple[Array, float]:  # fmt: skip
    """Compute a party's gradient and loss, both divided by the number of its documents."""
    if batch.size == 0:
        return np.zeros_like(flat), 0.0
    forward = _Forward(network, flat, batch, noise, statistics[0], documents)
    decoder = forward.decode(statistics[1])
    by_theta, by_beta = decoder.back(means[0].astype(network.precision))
    slopes, by_prior = forward.draw.back(by_theta)
    forward.norm.back(slopes, means[1].astype(network.precision))
    found = {"beta": by_beta, **by_prior, **forward.encoder.back(slopes)}
    return flatten(network, found, batch.size), (forward.kl + decoder.loss) / batch.size


@torch.no_grad()
def loss(network: Network, flat: Array, batch: Batch, noise: Noise, statistics: tuple[Array, ...], n: float) -> float:
    """Compute the summed loss of a batch, given the statistics of both norms over n documents."""
    forward = _Forward(network, flat, batch, noise, statistics[0], n)
    return forward.kl + forward.decode(statistics[1]).loss
