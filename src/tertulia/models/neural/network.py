"""The three models under one handle: weights as one flat array, losses and gradients in and out as arrays.

Methods see neural models through this file, so that they speak of arrays, as all methods do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, Array
from tertulia.errors import InputError
from tertulia.models.neural.bags import Bags, Batch, Noise

try:
    import torch
except ModuleNotFoundError as error:
    raise InputError("neural topic models need torch: pip install 'tertulia[neural]'") from error

from torch import Tensor
from torch.nn import functional

from tertulia.models.neural import backprop, combinedtm, prodlda, zeroshottm
from tertulia.models.neural.backprop import Value
from tertulia.models.neural.prodlda import EPS, Inputs, Sizes, Weights
from tertulia.models.neural.sparse import Rows

Kind = Literal["prodlda", "combinedtm", "zeroshottm"]
Normalisation = Literal["batch", "sync", "layer"]
LAYERS = ("encoder", "decoder")  # where statistics are taken, in the order of the forward pass
_BATCH = 1024  # documents whose shares are inferred together
_MODELS = {"prodlda": prodlda, "combinedtm": combinedtm, "zeroshottm": zeroshottm}


class Gradient(NamedTuple):
    """What one batch says about the weights."""

    flat: Array  # of the mean loss
    loss: float  # the mean
    statistics: Array  # [2, 2K + V] mean and variance of encoder and decoder, where they are the batch's own


@dataclass(frozen=True)
class Network:
    """A model's architecture."""

    kind: Kind
    sizes: Sizes
    normalisation: Normalisation = "sync"
    precision: Literal["float32", "float64"] = "float32"

    @property
    def dtype(self) -> torch.dtype:
        """The precision of weights and arithmetic."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The weights by name, in the order in which they stand in the flat array."""
        shapes: dict[str, tuple[int, ...]] = _MODELS[self.kind].shapes(self.sizes)
        return shapes

    @property
    def features(self) -> tuple[int, int]:
        """How many features each of the two norms has."""
        return 2 * self.sizes.topics, self.sizes.words

    def start(self, seed: int) -> Array:
        """Initial weights."""
        return self.flat(prodlda.start(self.shapes, self.sizes, seed))

    def resting(self) -> Array:
        """Statistics before the first batch: mean 0, variance 1."""
        return np.repeat([[0.0], [1.0]], sum(self.features), axis=1).astype(self.precision)

    def flat(self, named: dict[str, F64]) -> Array:
        """Weights by name as one array."""
        return np.concatenate([named[name].ravel() for name in self.shapes]).astype(self.precision)

    def named(self, flat: Array) -> dict[str, Array]:
        """One array as weights by name (views of it)."""
        shapes = self.shapes
        parts = np.split(flat, np.cumsum([prod(shape) for shape in shapes.values()])[:-1])
        return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}

    def tensors(self, flat: Array) -> Weights:
        """Weights as tensors that share the array's memory."""
        return {name: torch.from_numpy(part) for name, part in self.named(flat).items()}

    def inputs(self, batch: Batch, noise: Noise | None) -> Inputs:
        """A batch as the network reads it."""
        return Inputs.of(batch, self.sizes, noise, self.dtype)

    def encode(self, weights: Weights, inputs: Inputs) -> Tensor:
        """The encoder up to its norm."""
        return prodlda.encode(weights, inputs, _MODELS[self.kind].first_layer(weights, inputs))

    def losses(self, weights: Weights, inputs: Inputs, norm: Callable[[int, Tensor], Tensor]) -> Tensor:
        """The negative evidence bound of each document, [B], under norms that look at one document at a time."""
        theta, kl = prodlda.sample(weights, inputs, norm(0, self.encode(weights, inputs)), self.sizes)
        return kl + prodlda.score(norm(1, theta @ weights["beta"]), inputs)

    def value(self, weights: Weights, inputs: Inputs) -> Value:
        """The summed loss of a batch, its gradient, and the batch's statistics, by which it is normalised.

        LayerNorm has none.
        """
        if self.normalisation != "layer":
            return backprop.value(_MODELS[self.kind], weights, inputs, self.sizes)
        for weight in weights.values():
            weight.requires_grad_()
        loss = self.losses(weights, inputs, layer_norm).sum()
        slopes = torch.autograd.grad(loss, list(weights.values()))
        return Value(loss.item(), self.resting(), {name: g.numpy() for name, g in zip(weights, slopes, strict=True)})

    def gradient(self, flat: Array, batch: Batch, noise: Noise) -> Gradient:
        """The gradient of a batch's mean loss with the batch's own statistics."""
        if batch.size < self.least:
            return Gradient(np.zeros_like(flat), 0.0, self.resting())
        found = self.value(self.tensors(flat), self.inputs(batch, noise))
        parts = (g.spread(self.sizes.words) if isinstance(g, Rows) else g for g in found.slopes.values())
        flat = np.concatenate([part.reshape(-1) for part in parts]) / flat.dtype.type(batch.size)
        return Gradient(flat, found.loss / batch.size, found.statistics)

    @property
    def least(self) -> int:
        """The smallest batch that can be normalised: with statistics of its own, one document has no variance."""
        return 2 if self.normalisation == "batch" else 1

    def topic_word(self, flat: Array, statistics: Array) -> F64:
        """Read the topics out through the decoder's norm: softmax(norm(beta)), [K, V]."""
        beta = torch.from_numpy(self.named(flat)["beta"]).double()
        return torch.softmax(self._inference_norm(statistics)(1, beta), dim=1).numpy()

    def theta(self, flat: Array, statistics: Array, batch: Batch) -> F32 | F64:
        """Infer topic shares [B, K]: the softmax of the Gaussian's mean."""
        with torch.inference_mode():
            weights = {name: torch.from_numpy(part) for name, part in self.named(flat).items()}
            raw = self.encode(weights, self.inputs(batch, None))
            mean, _ = self._inference_norm(statistics)(0, raw).chunk(2, dim=1)
            theta: F32 | F64 = torch.softmax(mean, dim=1).numpy()
        return theta

    def theta_of(self, flat: Array, statistics: Array, bags: Bags) -> F64:
        """Infer the topic shares [D, K] of many documents, some at a time."""
        theta = np.empty((bags.n_documents, self.sizes.topics))
        for start in range(0, bags.n_documents, _BATCH):
            chosen = np.arange(start, min(start + _BATCH, bags.n_documents))
            theta[chosen] = self.theta(flat, statistics, bags.select(chosen))
        return theta

    def tokens_by_topic(self, flat: Array, statistics: Array, bags: Bags) -> F64:
        """Each document's tokens in the proportions of its theta, added up: [K]."""
        tokens = np.add.reduceat(bags.counts, bags.offsets[:-1], dtype=np.float64)  # no document is empty
        sizes: F64 = tokens @ self.theta_of(flat, statistics, bags)
        return sizes

    def prior_theta(self, flat: Array) -> F64:
        """The topic shares [K] of a document of which nothing is known: the softmax of the prior's mean."""
        mean, _ = prodlda.prior_of(self.tensors(flat), self.sizes, torch.zeros((), dtype=self.dtype))
        return torch.softmax(mean.double(), dim=0).numpy()

    def _inference_norm(self, statistics: Array) -> Callable[[int, Tensor], Tensor]:
        return layer_norm if self.normalisation == "layer" else given_norm(self.split(statistics))

    def split(self, statistics: Array | Tensor) -> list[Tensor]:
        """Statistics of both norms as one [2, F] tensor each."""
        whole, first = torch.as_tensor(statistics, dtype=self.dtype), self.features[0]
        return [whole[:, :first], whole[:, first:]]


def layer_norm(layer: int, raw: Tensor) -> Tensor:
    """Normalise each document by itself."""
    return functional.layer_norm(raw, raw.shape[1:], eps=EPS)


def given_norm(statistics: list[Tensor]) -> Callable[[int, Tensor], Tensor]:
    """Normalise by given means and variances."""

    def norm(layer: int, raw: Tensor) -> Tensor:
        mean, variance = statistics[layer].to(raw.dtype)
        normalised: Tensor = (raw - mean) * torch.rsqrt(variance + EPS)
        return normalised

    return norm


def flattened(gradients: tuple[Tensor, ...]) -> Array:
    """Gradients as one array."""
    return torch.cat([g.reshape(-1) for g in gradients]).numpy()
