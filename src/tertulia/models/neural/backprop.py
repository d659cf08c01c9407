"""Loss and gradient of a batch, for all three models and all three norms: norms, encoder, draw of theta, decoder.

`prodlda` has the formulas. The gradient is written by hand, because autograd takes 1.5 to 3.2 times as long on one core
(`python -m benchmarks.neural.paths`): there are forty small tensors between the wide layers, and their graph takes
longer than their values. Tests compare every gradient with autograd.

The decoder scores words under softmax(norm(theta beta)). Its loss and gradient take three matrix products, with two
passes over batch x vocabulary between them (`kernels.neural`). No norm has a scale or a shift.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import Array
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.neural import decoder, norms
from tertulia.kernels.neural.encoder import activate, activate_back, draw, draw_back
from tertulia.models.neural import prodlda
from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.prodlda import Inputs, Weights
from tertulia.models.neural.sparse import Bow, SlopesByName

EPS = 1e-5  # of all norms
_NONE = {kind: np.empty((2, 0), kind) for kind in (np.float32, np.float64)}  # no statistics, or no means, are given


class SharedStatistics(NamedTuple):
    """The statistics of a norm over the documents of all parties."""

    statistics: Array  # [2, F] mean and variance
    documents: float


class BatchNorm:
    """Features normalised over documents, by the statistics of the batch or of all parties."""

    def __init__(self, raw: Array, known: SharedStatistics | None = None) -> None:
        self.statistics = norms.statistics(raw) if known is None else known.statistics
        self.normed = norms.normalise(raw, self.statistics, EPS)

    def slope_means(self, slopes: Array, documents: float) -> Array:
        """Compute the batch's part of the mean slopes over this number of documents, [2, F]."""
        return norms.slope_means(slopes, self.normed, documents)

    def back(self, slopes: Array, means: Array | None = None) -> None:
        """Turn slopes by normalised features into slopes by raw ones, in place; default means: the batch's own."""
        means = self.slope_means(slopes, len(slopes)) if means is None else means
        norms.back(slopes, self.normed, self.statistics, means, EPS)


class LayerNorm:
    """Features normalised within each document."""

    def __init__(self, raw: Array) -> None:
        self.normed, self._scale = norms.normalise_documents(raw, EPS)

    def back(self, slopes: Array) -> None:
        """Turn slopes by normalised features into slopes by raw ones, in place."""
        norms.back_documents(slopes, self.normed, self._scale)


class BatchNormDecoder:
    """Words normalised over documents, by the statistics of the batch or of all parties.

    If theta is centred, so is its product with beta, and BatchNorm only scales it.
    """

    loss: float  # the negative log likelihood of all words
    statistics: Array  # [2, V] mean and variance of theta beta

    def __init__(self, theta: Array, beta: Tensor, bow: Bow, known: SharedStatistics | None = None) -> None:
        self.beta, self.bow, self.documents = beta, bow, len(theta)
        self.theta = torch.from_numpy(decoder.centre(theta, padded_width(len(theta) + 1)))
        self.product = beta.T @ self.theta  # [V, B], and a column for the mean
        given, n = (_NONE[theta.dtype.type], len(theta)) if known is None else (known.statistics, known.documents)
        found = decoder.normalise(self.product.numpy(), self.documents, given, float(n), EPS)
        self.statistics, self.scale, self.shifts = found.statistics, found.scale, found.shifts
        self.loss, self.rates = decoder.score(self.product.numpy(), found.shifts, found.totals, bow.tokens, bow.by_word)

    def slope_means(self, documents: float) -> Array:
        """Compute the batch's part of the mean slopes over this number of documents, [2, V]."""
        return decoder.slope_means(self.product.numpy(), self.shifts, self.rates, self.bow.by_word, documents)

    def back(self, means: Array | None = None) -> tuple[Array, Array]:
        """Compute the gradient by theta, [B, K], and by beta, [K, V]; it overwrites the product, so call it last."""
        known = _NONE[self.scale.dtype.type] if means is None else means
        decoder.slopes(
            self.product.numpy(), self.shifts, self.rates, self.bow.by_word, self.documents, self.scale, known
        )
        by_theta = (self.beta @ self.product).numpy()
        by_beta = (self.theta @ self.product.T).numpy()
        if means is None:
            return decoder.centre_back(by_theta, self.documents), by_beta
        return np.ascontiguousarray(by_theta[:, : self.documents].T), by_beta


class LayerNormDecoder:
    """Words normalised within each document."""

    def __init__(self, theta: Array, beta: Tensor, bow: Bow) -> None:
        self.theta, self.beta = torch.from_numpy(theta), beta
        self.slopes = self.theta @ beta  # [B, V] logits, and then their slopes
        self.loss = decoder.score_by_document(self.slopes.numpy(), bow.words, bow.counts, bow.offsets, EPS)

    def back(self) -> tuple[Array, Array]:
        """Compute the gradient by theta, [B, K], and by beta, [K, V]."""
        return (self.slopes @ self.beta.T).numpy(), (self.theta.T @ self.slopes).numpy()


class Value(NamedTuple):
    """Loss, statistics and gradient of a batch."""

    loss: float  # summed
    statistics: Array | None  # [2, 2K + V] mean and variance of encoder and decoder; LayerNorm has none
    slopes: SlopesByName  # the gradient of that sum by each weight


class EncoderPass:
    """The encoder on one batch: hidden layers, then mean and log variance of the Gaussian over topics."""

    def __init__(self, model: ModuleType, weights: Weights, inputs: Inputs) -> None:
        self.model, self.weights, self.inputs = model, weights, inputs
        self.layers = [model.first_layer(weights, inputs)]  # [B, H] each
        for i in range(sum(name.startswith("bias") for name in weights)):
            if i:
                self.layers.append(self.layers[-1] @ weights[f"hidden{i}"])
            activate(self.layers[-1].numpy(), weights[f"bias{i}"].numpy())
        keep = inputs.keep_hidden
        self.last = self.layers[-1] if keep is None else self.layers[-1] * keep
        raw = self.last @ weights["head"]
        self.raw = (raw + weights["head_bias"] if "head_bias" in weights else raw).numpy()  # [B, 2K] before the norm

    def back(self, slopes: Array) -> SlopesByName:
        """Compute the gradient by the encoder's weights, from the gradient by its raw output."""
        weights, keep, by_raw = self.weights, self.inputs.keep_hidden, torch.from_numpy(slopes)
        found: SlopesByName = {"head": (self.last.T @ by_raw).numpy(), "head_bias": slopes.sum(axis=0)}
        by_layer = by_raw @ weights["head"].T
        if keep is not None:
            by_layer.mul_(keep)
        for i in reversed(range(len(self.layers))):
            found[f"bias{i}"] = activate_back(by_layer.numpy(), self.layers[i].numpy())
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
        self.drawn = draw(normed, self.normal, self.keep, *self.prior)

    def back(self, theta_slopes: Array) -> tuple[Array, SlopesByName]:
        """Compute the gradient by the normalised output, [B, 2K], and by the prior, the divergence included."""
        prior_mean, prior_log_variance = self.prior
        found = draw_back(self.drawn, self.normed, self.normal, self.keep, prior_mean, prior_log_variance, theta_slopes)
        return found.normed, {"prior_mean": found.prior_mean, "prior_log_variance": found.prior_log_variance}


@torch.no_grad()
def value(model: ModuleType, weights: Weights, inputs: Inputs, sizes: Sizes, layer_norm: bool) -> Value:
    """Compute loss and gradient under LayerNorm, or under BatchNorm with the batch's own statistics."""
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
    """Compute the summed loss under LayerNorm."""
    draw = ThetaDraw(weights, inputs, sizes, LayerNorm(EncoderPass(model, weights, inputs).raw).normed)
    return draw.drawn.kl + LayerNormDecoder(draw.drawn.theta, weights["beta"], inputs.bow).loss
