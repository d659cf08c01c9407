"""Loss and gradient of a batch under its own statistics, by hand.

`prodlda` says what is computed, and autograd could do the way back. But between the wide layers lie forty small
tensors, and to keep a graph of them takes longer than to compute them.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import Array
from tertulia.kernels.neural import gaussian, hidden
from tertulia.models.neural import prodlda
from tertulia.models.neural.prodlda import EPS, Inputs, Sizes, Weights
from tertulia.models.neural.sparse import Slopes, decode


class Value(NamedTuple):
    """What a batch says."""

    loss: float  # summed
    statistics: Array  # [2, 2K + V] mean and variance of encoder and decoder
    slopes: Slopes  # the gradient of that sum by each weight


@torch.no_grad()
def value(model: ModuleType, weights: Weights, inputs: Inputs, sizes: Sizes) -> Value:
    """Go there and back."""
    layers = _hidden(weights, model.first_layer(weights, inputs), len(sizes.hidden))
    last = layers[-1] if inputs.keep_hidden is None else layers[-1] * inputs.keep_hidden
    normal = inputs.normal.numpy()
    keep = np.ones_like(normal) if inputs.keep_theta is None else inputs.keep_theta.numpy()
    mean, log_variance = (part.numpy() for part in prodlda.prior_of(weights, sizes, inputs.normal))
    drawn = gaussian.draw((last @ weights["head"]).numpy(), normal, keep, mean, log_variance, EPS)
    words = decode(drawn.theta, weights["beta"], inputs.bow, EPS)
    back = gaussian.back(drawn, normal, keep, mean, log_variance, EPS, words.theta, 1.0)
    by_raw = torch.from_numpy(back.raw)
    slopes: Slopes = {"beta": words.beta, "head": (last.T @ by_raw).numpy()}
    slopes |= {"prior_mean": back.prior_mean, "prior_log_variance": back.prior_log_variance}
    by_last = by_raw @ weights["head"].T
    by_last = by_last if inputs.keep_hidden is None else by_last.mul_(inputs.keep_hidden)
    slopes |= model.first_slopes(weights, inputs, _hidden_back(weights, layers, by_last, slopes))
    means, variances = (drawn.mean, words.mean), (drawn.variance, words.variance)
    statistics = np.stack((np.concatenate(means), np.concatenate(variances)))
    return Value(drawn.kl + words.loss, statistics, {name: slopes[name] for name in weights})


def _hidden(weights: Weights, first: Tensor, depth: int) -> list[Tensor]:
    """All hidden layers, [B, H] each."""
    layers = [first]
    for i in range(depth):
        if i:
            layers.append(layers[-1] @ weights[f"hidden{i}"])
        hidden.activate(layers[-1].numpy(), weights[f"bias{i}"].numpy())
    return layers


def _hidden_back(weights: Weights, layers: list[Tensor], slopes: Tensor, found: Slopes) -> Tensor:
    """From slopes by the last layer to those by what entered the first; note the weights' own on the way."""
    for i in reversed(range(len(layers))):
        found[f"bias{i}"] = hidden.back(slopes.numpy(), layers[i].numpy())
        if i:
            found[f"hidden{i}"] = (layers[i - 1].T @ slopes).numpy()
            slopes = slopes @ weights[f"hidden{i}"].T
    return slopes
