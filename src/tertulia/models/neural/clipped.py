"""Sums of clipped gradients, for training under differential privacy (DP-SGD: Abadi et al. 2016).

Each document's gradient, by all weights together, is scaled to a norm of at most `clip`. The sum is in steps of
clip 2^-bits, as integers: one document moves it by a vector of a norm of at most 2^bits, exactly. Norms come from the
vectors whose outer products gradients are ("ghost norms": Li et al. 2022), so nothing of the size of a layer is kept
for a document. Only LayerNorm will do, for BatchNorm's statistics mix documents; and only ProdLDA is supported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.errors import FormatError
from tertulia.kernels.neural import decoder, per_document
from tertulia.kernels.neural.encoder import activate, activate_back
from tertulia.models.neural.backprop import EPS, LayerNorm, ThetaDraw
from tertulia.models.neural.bags import Bags, Batch, Noise
from tertulia.models.neural.network import Network

_BATCH = 128  # documents computed together, for memory's sake
_MARGIN = 1.0 - 2.0**-20  # norms and products are computed in double precision, with far smaller errors


class Clipping(NamedTuple):
    """The largest norm of a document's gradient, and the grid of the sum: steps of clip 2^-bits."""

    clip: float
    bits: int


class Part(NamedTuple):
    """The gradient by one weight: of each document, the product of its rows of left and right."""

    left: Array | None  # [B, n]; None: the bag of words
    right: Array  # [B, m]


def clipped_sum(network: Network, flat: Array, bags: Bags, chosen: I64, noise: Noise, how: Clipping) -> I64:
    """Sum the clipped gradients of the chosen documents, in steps of clip 2^-bits, [n]."""
    total = np.zeros(flat.shape, np.int64)
    for start in range(0, len(chosen), _BATCH):
        batch = bags.select(chosen[start : start + _BATCH])
        _add(network.named(total), batch, gradient_parts(network, flat, batch, noise), how)
    return total


def _add(total: dict[str, Array], batch: Batch, parts: dict[str, Part], how: Clipping) -> None:
    words, counts, offsets = batch.words, batch.counts, batch.offsets
    factors = factors_of(batch, parts, how)
    for name, (left, right) in parts.items():
        if left is None:
            per_document.add_bags(total[name], words, counts, offsets, right, factors)
        else:
            place = total[name].reshape(left.shape[1], right.shape[1])
            per_document.add_products(place, left, right, factors)


def factors_of(batch: Batch, parts: dict[str, Part], how: Clipping) -> F64:
    """Compute by what each document's gradient is multiplied, [B]: it is clipped, and in steps of the grid.

    A gradient that is not finite counts as none. An error would tell the server something about a document.
    """
    squares = np.zeros(batch.size)
    for left, right in parts.values():
        lefts = (
            per_document.squared_counts(batch.counts, batch.offsets)
            if left is None
            else per_document.squared_norms(left)
        )
        squares += lefts * per_document.squared_norms(right)
    with np.errstate(all="ignore"):
        shrunk = how.clip / np.maximum(np.sqrt(squares), how.clip)
    factors: F64 = np.where(np.isfinite(squares), shrunk, 0.0) * (_MARGIN * 2.0**how.bits / how.clip)
    return factors


def gradient_parts(network: Network, flat: Array, batch: Batch, noise: Noise) -> dict[str, Part]:
    """Compute each document's gradient of its own loss by each weight, as products of vectors."""
    if network.normalisation != "layer" or network.kind != "prodlda":
        raise FormatError("gradients of single documents need the network 'prodlda' with normalisation 'layer'")
    weights, tensors, inputs = network.named(flat), network.tensors(flat), network.inputs(batch, noise)
    ones = np.ones((batch.size, 1), flat.dtype)
    layers = [inputs.bow.times(tensors["words"]).numpy()]
    depth = len(network.sizes.hidden)
    with np.errstate(all="ignore"):
        for i in range(depth):
            if i:
                layers.append(per_document.times(layers[-1], weights[f"hidden{i}"]))
            activate(layers[-1], weights[f"bias{i}"])
        keep = 1.0 if inputs.keep_hidden is None else inputs.keep_hidden.numpy()
        last = layers[-1] * keep
        norm = LayerNorm(per_document.times(last, weights["head"]) + weights["head_bias"])
        draw = ThetaDraw(tensors, inputs, network.sizes, norm.normed)
        logits = per_document.times(draw.drawn.theta, weights["beta"])
        decoder.score_by_document(logits, inputs.bow.words, inputs.bow.counts, inputs.bow.offsets, EPS)  # now slopes
        slopes, _ = draw.back(per_document.times_transposed(logits, weights["beta"]))
        norm.back(slopes)
        parts = {"beta": Part(draw.drawn.theta, logits), "head": Part(last, slopes), "head_bias": Part(ones, slopes)}
        parts |= {name: Part(ones, right) for name, right in _prior_slopes(draw).items() if name in weights}
        by_layer = per_document.times_transposed(slopes, weights["head"]) * keep
        for i in reversed(range(depth)):
            activate_back(by_layer, layers[i])
            parts[f"bias{i}"] = Part(ones, by_layer)
            if i:
                parts[f"hidden{i}"] = Part(layers[i - 1], by_layer)
                by_layer = per_document.times_transposed(by_layer, weights[f"hidden{i}"])
        parts["words"] = Part(None, by_layer)
    return parts


def _prior_slopes(draw: ThetaDraw) -> dict[str, Array]:
    """Compute each document's gradient of its divergence by the prior's mean and log variance, [B, K] each."""
    mean, log_variance = draw.prior
    away, precision = draw.normed[:, : len(mean)] - mean, np.exp(-log_variance)
    spread = draw.drawn.deviations**2 * precision
    by_log_variance = 0.5 * ((1.0 - spread) - away**2 * precision)
    return {"prior_mean": -away * precision, "prior_log_variance": by_log_variance.astype(away.dtype)}
