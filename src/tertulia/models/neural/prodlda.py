"""ProdLDA: a variational autoencoder whose decoder is a product of experts.

Srivastava and Sutton 2017, "Autoencoding Variational Inference for Topic Models" (ICLR); sizes and optimiser are those
of Bianchi et al.'s contextualized topic models. An encoder reads a bag of words into a Gaussian over topics, whose
softmax is theta; words are drawn from softmax(norm(theta beta)). Both norms are without scale and shift.

    h = softplus(W h + b), for each hidden layer; the first reads the bag of words
    mean, log_variance = norm(head h)
    theta = softmax(mean + exp(log_variance / 2) normal)
    loss = KL(N(mean, variance) || prior) - log likelihood of the words under softmax(norm(theta beta))

This module has the shapes and initial values of the weights; `backprop` computes loss and gradient.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import F64
from tertulia.errors import InputError
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.bags import Batch, Noise
from tertulia.models.neural.sparse import Bow, SlopesByName

Weights = dict[str, Tensor]


class Inputs(NamedTuple):
    """One batch with its noise, as tensors."""

    bow: Bow
    embeddings: Tensor | None  # [B, E]
    normal: Tensor  # [B, K]
    keep_hidden: Tensor | None  # [B, H]; None: no dropout
    keep_theta: Tensor | None  # [B, K]

    @property
    def sentences(self) -> Tensor:
        """The embeddings; raise `InputError` if there are none."""
        if self.embeddings is None:
            raise InputError("this model reads sentence embeddings: give a corpus that has texts, or with_embeddings")
        return self.embeddings

    @classmethod
    def of(cls, batch: Batch, sizes: Sizes, noise: Noise | None, dtype: torch.dtype) -> Inputs:
        """Draw the batch's noise; without noise (for inference) use the Gaussian's mean and no dropout."""
        K, H, p = sizes.topics, sizes.hidden[-1], sizes.dropout
        embeddings = None if batch.embeddings is None else torch.from_numpy(batch.embeddings).to(dtype)
        bow = Bow.of(batch, sizes.words, dtype)
        if noise is None:
            return cls(bow, embeddings, torch.zeros((), dtype=dtype), None, None)
        kind = np.float32 if dtype == torch.float32 else np.float64
        normal = torch.from_numpy(noise.normal(batch.keys, K, 0, kind))
        if p == 0:
            return cls(bow, embeddings, normal, None, None)
        masks = (torch.from_numpy(noise.mask(batch.keys, n, s, p, kind)) for s, n in ((1, H), (2, K)))
        return cls(bow, embeddings, normal, *masks)


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights, in the order of the flat array."""
    return {"words": (sizes.words, sizes.hidden[0]), **body(sizes)}


def body(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights after the first layer, which are the same for all three models.

    BatchNorm removes the mean of every feature. So a bias before it, or a learned mean of the prior, would have only
    rounding errors as gradient, which Adam amplifies to a random walk. They exist only if the norm keeps means.
    """
    H, K = sizes.hidden, sizes.topics
    deeper = {f"hidden{i}": shape for i, shape in enumerate(pairwise(H), 1)}
    biases = {f"bias{i}": (n,) for i, n in enumerate(H)}
    prior = {"prior_log_variance": (K,)} if sizes.learn_prior else {}
    means = {"head_bias": (2 * K,), **({"prior_mean": (K,)} if sizes.learn_prior else {})} if sizes.shifts else {}
    return {**deeper, **biases, "head": (H[-1], 2 * K), "beta": (K, sizes.words), **prior, **means}


def first_layer(weights: Weights, inputs: Inputs) -> Tensor:
    """Compute the first layer, from bags of words; the rest is the same for all three models."""
    return inputs.bow.times(weights["words"])


def first_slopes(weights: Weights, inputs: Inputs, slopes: Tensor) -> SlopesByName:
    """Compute the gradient by the first layer's weights, from the gradient by its output."""
    return {"words": inputs.bow.times_slopes(slopes)}


def prior_of(weights: Weights, sizes: Sizes, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the prior's mean and log variance, learned or fixed."""
    mean, log_variance = _fixed_prior(sizes.topics, sizes.alpha, like.dtype)
    return weights.get("prior_mean", mean), weights.get("prior_log_variance", log_variance)


@lru_cache(maxsize=8)
def _fixed_prior(K: int, alpha: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    mean, variance = laplace_prior(np.full(K, alpha))
    return torch.from_numpy(mean).to(dtype), torch.from_numpy(np.log(variance)).to(dtype)


def laplace_prior(alpha: F64) -> tuple[F64, F64]:
    """Approximate a Dirichlet by a Gaussian in the softmax basis: mean and variance of each topic.

    >>> [a.round(3).tolist() for a in laplace_prior(np.array([1.0, 1.0]))]
    [[0.0, 0.0], [0.5, 0.5]]
    """
    K = len(alpha)
    mean = np.log(alpha) - np.log(alpha).mean()
    variance = (1.0 / alpha) * (1.0 - 2.0 / K) + (1.0 / alpha).sum() / K**2
    return mean, variance


def initial_weights(names: dict[str, tuple[int, ...]], sizes: Sizes, seed: int) -> dict[str, F64]:
    """Draw initial weights, the same for all parties: uniform as in linear layers, Glorot for beta, and the prior."""
    random = np.random.default_rng(seed)
    weights = {}
    for name, shape in names.items():
        fan_in = {"bias0": first_fan_in(sizes), "words": first_fan_in(sizes), "head_bias": sizes.hidden[-1]}.get(
            name, sizes.hidden[int(name[-1]) - 1] if name.startswith("bias") else shape[0]
        )
        bound = math.sqrt(6.0 / sum(shape)) if name == "beta" else 1.0 / math.sqrt(fan_in)
        weights[name] = random.uniform(-bound, bound, shape)
    if sizes.learn_prior:
        mean, variance = laplace_prior(np.full(sizes.topics, sizes.alpha))
        weights |= {"prior_mean": mean, "prior_log_variance": np.log(variance)}
    return {name: weights[name] for name in names}


def first_fan_in(sizes: Sizes) -> int:
    """Return the number of inputs of the published first layer: V, and 2V for CombinedTM."""
    return sizes.words * (2 if sizes.embedding else 1)
