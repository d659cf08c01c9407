"""ProdLDA and its relatives as torch's autograd sees them: the reference for `tertulia.models.neural.backprop`.

Tests compare the package's gradients with these, and `benchmarks.neural.paths` its speed. Any norm can be given: a
function of the norm's number (0: the encoder's, 1: the decoder's) and of what enters it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tertulia._arrays import Array
from tertulia.kernels.neural.encoder import MOST_LOG_VARIANCE
from tertulia.models.neural import combinedtm
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.backprop import EPS
from tertulia.models.neural.bags import Batch, Noise
from tertulia.models.neural.network import Network
from tertulia.models.neural.prodlda import Inputs, Weights, prior_of
from tertulia.models.neural.sparse import Bow

Norm = Callable[[int, Tensor], Tensor]


def batch_norm(layer: int, raw: Tensor) -> Tensor:
    """Normalise each feature by the batch's own statistics."""
    return functional.batch_norm(raw, None, None, training=True, eps=EPS)


def layer_norm(layer: int, raw: Tensor) -> Tensor:
    """Normalise each document by itself."""
    return functional.layer_norm(raw, raw.shape[1:], eps=EPS)


def given_norm(statistics: Sequence[Tensor]) -> Norm:
    """Normalise by given means and variances, [2, F] for each norm."""

    def norm(layer: int, raw: Tensor) -> Tensor:
        mean, variance = statistics[layer].to(raw.dtype)
        normalised: Tensor = (raw - mean) * torch.rsqrt(variance + EPS)
        return normalised

    return norm


def times(bow: Bow, weight: Tensor) -> Tensor:
    """Return bags of words times a [V, H] weight: [B, H]."""
    words, counts, starts = (torch.from_numpy(part) for part in (bow.words, bow.counts, bow.offsets[:-1]))
    return functional.embedding_bag(words, weight, starts, mode="sum", per_sample_weights=counts)


def encode(weights: Weights, inputs: Inputs) -> Tensor:
    """Return mean and log variance of the Gaussian over topics, before their norm: [B, 2K]."""
    first = times(inputs.bow, weights["words"]) if "words" in weights else torch.zeros(())
    if inputs.embeddings is not None and "sentence" in weights:
        first = first + inputs.embeddings @ weights["sentence"]
    if inputs.embeddings is not None and "folded" in weights:
        first = first + (combinedtm.GAIN * inputs.embeddings) @ weights["folded"]
    if inputs.embeddings is not None and "adapter" in weights:
        first = first + (inputs.embeddings @ weights["adapter"] + weights["adapter_bias"]) @ weights["adapted"]
    h = _softplus(first + weights["bias0"])
    for i in range(1, sum(name.startswith("bias") for name in weights)):
        h = _softplus(torch.addmm(weights[f"bias{i}"], h, weights[f"hidden{i}"]))
    if inputs.keep_hidden is not None:
        h = h * inputs.keep_hidden
    raw = h @ weights["head"]
    return raw + weights["head_bias"] if "head_bias" in weights else raw


def _softplus(x: Tensor) -> Tensor:
    return functional.softplus(x, threshold=40.0)  # above it torch says x; from its default, 20, float64 can tell that


def sample(weights: Weights, inputs: Inputs, gaussian: Tensor, sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Return theta of each document, [B, K], and the divergence of its Gaussian from the prior, [B]."""
    mean, log_variance = gaussian.chunk(2, dim=1)
    log_variance = log_variance.clamp(max=MOST_LOG_VARIANCE)  # see there
    theta = torch.softmax(mean + torch.exp(0.5 * log_variance) * inputs.normal, dim=1)
    if inputs.keep_theta is not None:
        theta = theta * inputs.keep_theta
    return theta, divergence(mean, log_variance, *prior_of(weights, sizes, gaussian))


def divergence(mean: Tensor, log_variance: Tensor, prior_mean: Tensor, prior_log_variance: Tensor) -> Tensor:
    """Return KL(N(mean, variance) || N(prior)) of each document, [B]."""
    inverse = torch.exp(-prior_log_variance)
    terms = (log_variance.exp() + (mean - prior_mean) ** 2) * inverse - 1.0 + prior_log_variance - log_variance
    return 0.5 * terms.sum(dim=1)


def score(logits: Tensor, inputs: Inputs) -> Tensor:
    """Return the negative log likelihood of each document's words, [B]."""
    bow = inputs.bow
    documents = torch.repeat_interleave(torch.arange(bow.size), torch.from_numpy(np.diff(bow.offsets)))
    own = torch.from_numpy(bow.counts) * logits[documents, torch.from_numpy(bow.words)]
    dots = torch.zeros(bow.size, dtype=own.dtype).index_add(0, documents, own)
    return torch.from_numpy(bow.tokens) * torch.logsumexp(logits, dim=1) - dots


def losses(network: Network, weights: Weights, inputs: Inputs, norm: Norm) -> Tensor:
    """Return the negative evidence bound of each document, [B]."""
    theta, kl = sample(weights, inputs, norm(0, encode(weights, inputs)), network.sizes)
    return kl + score(norm(1, theta @ weights["beta"]), inputs)


def leaves(network: Network, flat: Array) -> Weights:
    """Return weights whose gradient autograd is to find."""
    return {name: weight.requires_grad_() for name, weight in network.tensors(flat).items()}


def gradient(network: Network, flat: Array, batch: Batch, noise: Noise, norm: Norm) -> tuple[Array, float]:
    """Return gradient and mean loss of a batch."""
    weights = leaves(network, flat)
    loss = losses(network, weights, network.inputs(batch, noise), norm).mean()
    return _flat(torch.autograd.grad(loss, list(weights.values()))), loss.item()


def _flat(gradients: tuple[Tensor, ...]) -> Array:
    return torch.cat([g.reshape(-1) for g in gradients]).numpy()


def five_questions(network: Network, flat: Array, batches: Sequence[Batch], noise: Noise) -> Array:
    """Find the gradient over all parties' batches by SyncOpt's five questions, each with a graph of its own.

    The total loss L depends on the weights directly, and through the statistics s of both norms, which are sums over
    all parties. A party's part of the gradient is that of its own loss with s held fixed, plus that of (dL/ds) s.
    """
    n, parts = sum(batch.size for batch in batches), [batch for batch in batches if batch.size]
    known: list[Tensor] = []
    for layer in range(2):
        with torch.no_grad():
            raws = [_forward(network, network.tensors(flat), b, noise, known)[0][layer].double() for b in parts]
        mean = torch.stack([raw.sum(dim=0) for raw in raws]).sum(dim=0) / n
        square = torch.stack([raw.square().sum(dim=0) for raw in raws]).sum(dim=0) / n
        known.append(torch.stack((mean, (square - mean**2).clamp(min=0))).to(network.dtype))
    slopes: dict[int, Tensor] = {}
    for layer in (1, 0):
        total = torch.zeros_like(known[layer])
        for batch in parts:
            fixed = [s.clone().requires_grad_() for s in known]
            found = _forward(network, network.tensors(flat), batch, noise, fixed)
            total += torch.autograd.grad(_objective(*found, known, slopes, n), fixed[layer])[0]
        slopes[layer] = total
    whole = np.zeros_like(flat)
    for batch in parts:
        weights = leaves(network, flat)
        found = _forward(network, weights, batch, noise, known)
        whole += _flat(torch.autograd.grad(_objective(*found, known, slopes, n) / n, list(weights.values())))
    return whole


def _forward(
    network: Network, weights: Weights, batch: Batch, noise: Noise, known: Sequence[Tensor]
) -> tuple[list[Tensor], Tensor]:
    """Return what enters each norm, as far as statistics are known, and the loss."""
    inputs, norm = network.inputs(batch, noise), given_norm(known)
    raw, nothing = [encode(weights, inputs)], torch.zeros(())
    if len(known) < 1:
        return raw, nothing
    theta, kl = sample(weights, inputs, norm(0, raw[0]), network.sizes)
    raw.append(theta @ weights["beta"])
    return raw, (kl + score(norm(1, raw[1]), inputs)).sum() if len(known) == 2 else nothing


def _objective(raw: list[Tensor], loss: Tensor, known: Sequence[Tensor], slopes: dict[int, Tensor], n: int) -> Tensor:
    """Return the loss and, for each norm whose dL/ds is known, the part that goes through its statistics."""
    for layer, given in slopes.items():
        slope, mean = given / n, known[layer][0]
        loss = loss + (slope[0] * raw[layer].sum(dim=0)).sum()
        loss = loss + (slope[1] * (raw[layer] - mean).square().sum(dim=0)).sum()
    return loss
