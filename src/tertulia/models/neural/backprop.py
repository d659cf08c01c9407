"""Loss and gradient of a batch: the one implementation of all three models, with all three norms.

`prodlda` says what is computed. The gradient is written out by hand, for autograd takes 1.5 to 3.2 times as long on one
core (`python -m benchmarks.neural.paths`): between the wide layers lie forty small tensors, and to keep a graph of them
takes longer than to compute them. Tests compare every gradient with autograd's.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch

from tertulia._arrays import Array
from tertulia.kernels.neural import gaussian, hidden
from tertulia.models.neural import prodlda
from tertulia.models.neural.decoder import BatchNormDecoder, LayerNormDecoder
from tertulia.models.neural.norms import BatchNorm, LayerNorm
from tertulia.models.neural.prodlda import Inputs, Weights
from tertulia.models.neural.sizes import Sizes
from tertulia.models.neural.sparse import SlopesByName


class Value(NamedTuple):
    """What a batch says."""

    loss: float  # summed
    statistics: Array | None  # [2, 2K + V] mean and variance of encoder and decoder; LayerNorm has none
    slopes: SlopesByName  # the gradient of that sum by each weight


class EncoderPass:
    """The encoder on one batch: hidden layers, and then mean and log variance of the Gaussian over topics."""

    def __init__(self, model: ModuleType, weights: Weights, inputs: Inputs) -> None:
        self.model, self.weights, self.inputs = model, weights, inputs
        self.layers = [model.first_layer(weights, inputs)]  # [B, H] each
        for i in range(sum(name.startswith("bias") for name in weights)):
            if i:
                self.layers.append(self.layers[-1] @ weights[f"hidden{i}"])
            hidden.activate(self.layers[-1].numpy(), weights[f"bias{i}"].numpy())
        keep = inputs.keep_hidden
        self.last = self.layers[-1] if keep is None else self.layers[-1] * keep
        raw = self.last @ weights["head"]
        self.raw = (raw + weights["head_bias"] if "head_bias" in weights else raw).numpy()  # [B, 2K] before the norm

    def back(self, slopes: Array) -> SlopesByName:
        """The gradient by the encoder's weights, from that by its raw output."""
        weights, keep, by_raw = self.weights, self.inputs.keep_hidden, torch.from_numpy(slopes)
        found: SlopesByName = {"head": (self.last.T @ by_raw).numpy(), "head_bias": slopes.sum(axis=0)}
        by_layer = by_raw @ weights["head"].T
        if keep is not None:
            by_layer.mul_(keep)
        for i in reversed(range(len(self.layers))):
            found[f"bias{i}"] = hidden.back(by_layer.numpy(), self.layers[i].numpy())
            if i:
                found[f"hidden{i}"] = (self.layers[i - 1].T @ by_layer).numpy()
                by_layer = by_layer @ weights[f"hidden{i}"].T
        first: SlopesByName = self.model.first_slopes(weights, self.inputs, by_layer)
        return found | first


class ThetaDraw:
    """Theta of each document, drawn from the Gaussian that the encoder's normalised output describes."""

    def __init__(self, weights: Weights, inputs: Inputs, sizes: Sizes, normed: Array) -> None:
        self.normed, self.normal = normed, inputs.normal.numpy()
        self.keep = np.ones_like(self.normal) if inputs.keep_theta is None else inputs.keep_theta.numpy()
        self.prior = [part.numpy() for part in prodlda.prior_of(weights, sizes, inputs.normal)]
        self.drawn = gaussian.draw(normed, self.normal, self.keep, *self.prior)

    def back(self, theta_slopes: Array) -> tuple[Array, SlopesByName]:
        """The gradient by the normalised output, [B, 2K], and by the prior; that of the divergence is added."""
        prior_mean, prior_log_variance = self.prior
        found = gaussian.back(
            self.drawn, self.normed, self.normal, self.keep, prior_mean, prior_log_variance, theta_slopes
        )
        return found.normed, {"prior_mean": found.prior_mean, "prior_log_variance": found.prior_log_variance}


@torch.no_grad()
def value(model: ModuleType, weights: Weights, inputs: Inputs, sizes: Sizes, layer_norm: bool) -> Value:
    """Loss and gradient under LayerNorm, or under BatchNorm with the batch's own statistics."""
    encoder = EncoderPass(model, weights, inputs)
    norm = LayerNorm(encoder.raw) if layer_norm else BatchNorm(encoder.raw)
    draw = ThetaDraw(weights, inputs, sizes, norm.normed)
    decode = LayerNormDecoder if layer_norm else BatchNormDecoder
    decoder = decode(draw.drawn.theta, weights["beta"], inputs.bow)
    by_theta, by_beta = decoder.back()
    slopes, by_prior = draw.back(by_theta)
    norm.back(slopes)
    found = {"beta": by_beta, **by_prior, **encoder.back(slopes)}
    statistics = None
    if isinstance(norm, BatchNorm) and isinstance(decoder, BatchNormDecoder):
        statistics = np.concatenate((norm.statistics, decoder.statistics), axis=1)
    return Value(draw.drawn.kl + decoder.loss, statistics, {name: found[name] for name in weights})


@torch.no_grad()
def layer_norm_loss(model: ModuleType, weights: Weights, inputs: Inputs, sizes: Sizes) -> float:
    """The summed loss under LayerNorm."""
    draw = ThetaDraw(weights, inputs, sizes, LayerNorm(EncoderPass(model, weights, inputs).raw).normed)
    return draw.drawn.kl + LayerNormDecoder(draw.drawn.theta, weights["beta"], inputs.bow).loss
