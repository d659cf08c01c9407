"""One interface to the three models: weights, losses and gradients are plain arrays.

Methods use neural models only through this module, so they handle arrays, as all methods do.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F32, F64, Array
from tertulia.errors import InputError
from tertulia.models.neural.bags import Bags, Batch, Noise

try:
    import torch
except ModuleNotFoundError as error:
    raise InputError("neural topic models need torch: pip install 'tertulia[neural]'") from error

from torch.nn import functional

from tertulia.models.neural import backprop, combinedtm, prodlda, zeroshottm
from tertulia.models.neural.architecture import Kind, Normalisation, Precision, Sizes
from tertulia.models.neural.backprop import EPS, BatchNorm, EncoderPass, LayerNorm, SharedStatistics, Value
from tertulia.models.neural.prodlda import Inputs, Weights
from tertulia.models.neural.sparse import Rows, SlopesByName

_BATCH = 1024  # documents per pass of inference
_MODELS = {"prodlda": prodlda, "combinedtm": combinedtm, "zeroshottm": zeroshottm}


class Gradient(NamedTuple):
    """Gradient, loss and statistics of one batch."""

    flat: Array  # of the mean loss
    loss: float  # the mean
    statistics: Array  # [2, 2K + V] mean and variance of encoder and decoder, of this batch


@dataclass(frozen=True)
class Network:
    """A neural model's architecture, and the computations with its weights."""

    kind: Kind
    sizes: Sizes
    normalisation: Normalisation = "sync"
    precision: Precision = "float32"

    @property
    def dtype(self) -> torch.dtype:
        """The precision of weights and arithmetic."""
        return torch.float64 if self.precision == "float64" else torch.float32

    @property
    def model(self) -> ModuleType:
        """The module with the first layer, which differs between the models."""
        return _MODELS[self.kind]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the weights by name, in the order of the flat array."""
        shapes: dict[str, tuple[int, ...]] = self.model.shapes(self.sizes)
        return shapes

    @property
    def features(self) -> tuple[int, int]:
        """The number of features of each of the two norms."""
        return 2 * self.sizes.topics, self.sizes.words

    def initial_weights(self, seed: int) -> Array:
        """Draw the weights from which training starts."""
        return self.flat(prodlda.initial_weights(self.shapes, self.sizes, seed))

    def initial_statistics(self) -> Array:
        """Return the statistics before the first batch: mean 0, variance 1."""
        return np.repeat([[0.0], [1.0]], sum(self.features), axis=1).astype(self.precision)

    def flat(self, named: dict[str, F64]) -> Array:
        """Concatenate weights by name into one array."""
        return np.concatenate([named[name].ravel() for name in self.shapes]).astype(self.precision)

    def named(self, flat: Array) -> dict[str, Array]:
        """Split the flat array into weights by name (views of it)."""
        shapes = self.shapes
        parts = np.split(flat, np.cumsum([prod(shape) for shape in shapes.values()])[:-1])
        return {name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)}

    def tensors(self, flat: Array) -> Weights:
        """Return weights as tensors that share the array's memory, or a copy's if the array cannot be written."""
        own = np.require(flat, requirements="W")
        return {name: torch.from_numpy(part) for name, part in self.named(own).items()}

    def inputs(self, batch: Batch, noise: Noise | None) -> Inputs:
        """Convert a batch to the inputs of the network."""
        return Inputs.of(batch, self.sizes, noise, self.dtype)

    def value(self, weights: Weights, inputs: Inputs) -> Value:
        """Compute the summed loss of a batch, its gradient, and the batch's own statistics, which normalise it."""
        return backprop.value(self.model, weights, inputs, self.sizes, self.normalisation == "layer")

    def gradient(self, flat: Array, batch: Batch, noise: Noise) -> Gradient:
        """Compute the gradient of a batch's mean loss, with the batch's own statistics."""
        if batch.size < self.min_batch:
            return Gradient(np.zeros_like(flat), 0.0, self.initial_statistics())
        found = self.value(self.tensors(flat), self.inputs(batch, noise))
        statistics = self.initial_statistics() if found.statistics is None else found.statistics
        return Gradient(flatten(self, found.slopes, batch.size), found.loss / batch.size, statistics)

    @property
    def min_batch(self) -> int:
        """The smallest batch that can be normalised: one document has no variance of its own."""
        return 2 if self.normalisation == "batch" else 1

    def topic_word(self, flat: Array, statistics: Array) -> F64:
        """Read the topics out through the decoder's norm: softmax(norm(beta)), [K, V]."""
        beta = torch.from_numpy(self.named(np.require(flat, requirements="W"))["beta"]).double()
        mean, variance = torch.from_numpy(np.require(self.split(statistics)[1], requirements="W")).double()
        if self.normalisation == "layer":
            normed = functional.layer_norm(beta, beta.shape[1:], eps=EPS)
        else:
            normed = (beta - mean) * torch.rsqrt(variance + EPS)
        return torch.softmax(normed, dim=1).numpy()

    @torch.no_grad()
    def theta(self, flat: Array, statistics: Array, batch: Batch) -> F32 | F64:
        """Infer topic shares [B, K]: the softmax of the Gaussian's mean."""
        raw = EncoderPass(self.model, self.tensors(flat), self.inputs(batch, None)).raw
        known = SharedStatistics(self.split(statistics)[0], 0.0)
        norm = LayerNorm(raw) if self.normalisation == "layer" else BatchNorm(raw, known)
        theta: F32 | F64 = torch.softmax(torch.from_numpy(norm.normed[:, : self.sizes.topics]), dim=1).numpy()
        return theta

    def infer(self, flat: Array, statistics: Array, bags: Bags) -> F64:
        """Infer the topic shares [D, K] of many documents, in batches."""
        theta = np.empty((bags.n_documents, self.sizes.topics))
        for start in range(0, bags.n_documents, _BATCH):
            chosen = np.arange(start, min(start + _BATCH, bags.n_documents))
            theta[chosen] = self.theta(flat, statistics, bags.select(chosen))
        return theta

    def tokens_by_topic(self, flat: Array, statistics: Array, bags: Bags) -> F64:
        """Sum the tokens of all documents by topic, in the proportions of theta: [K]."""
        tokens = np.add.reduceat(bags.counts, bags.offsets[:-1], dtype=np.float64)  # no document is empty
        sizes: F64 = tokens @ self.infer(flat, statistics, bags)
        return sizes

    def prior_theta(self, flat: Array) -> F64:
        """Return the topic shares [K] of an unknown document: the softmax of the prior's mean."""
        mean, _ = prodlda.prior_of(self.tensors(flat), self.sizes, torch.zeros((), dtype=self.dtype))
        return torch.softmax(mean.double(), dim=0).numpy()

    def split(self, statistics: Array) -> list[Array]:
        """Split statistics into one [2, F] array for each norm."""
        return [np.ascontiguousarray(part, self.precision) for part in np.split(statistics, self.features[:1], axis=1)]


def flatten(network: Network, slopes: SlopesByName, documents: int) -> Array:
    """Flatten a gradient by name, divided by the number of documents."""
    parts = (slopes[name] for name in network.shapes)
    whole = (part.whole(network.sizes.words) if isinstance(part, Rows) else part for part in parts)
    flat = np.concatenate([part.reshape(-1) for part in whole])
    mean: Array = flat / flat.dtype.type(documents)
    return mean


def use_threads(n: int) -> None:
    """Set the number of torch threads for the calling thread.

    More threads than idle cores are much slower than one: every operation then waits for the slowest thread.
    """
    if torch.get_num_threads() != n:
        torch.set_num_threads(n)
