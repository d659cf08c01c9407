"""Norms without scale and shift of features [B, F], and their gradients.

BatchNorm normalises each feature over documents, by statistics [2, F]: mean and variance. Its gradient needs the mean
over documents of the slopes, and of slopes times normalised features, [2, F]. Both are the batch's own or, where a
batch is spread over parties, those of all parties. LayerNorm normalises each document over its features.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import Array
from tertulia.kernels.core.jit import loose_kernel


@loose_kernel
def statistics(raw: Array) -> Array:
    """Compute mean and variance of each feature, [2, F]."""
    B, F = raw.shape
    out = np.zeros((2, F), raw.dtype)
    share = raw.dtype.type(1.0 / B)
    for d in range(B):
        for f in range(F):
            out[0, f] += raw[d, f] * share
    for d in range(B):
        for f in range(F):
            away = raw[d, f] - out[0, f]
            out[1, f] += away * away * share
    return out


@loose_kernel
def normalise(raw: Array, known: Array, eps: float) -> Array:
    """Take off each feature's mean and divide by its deviation, by known statistics."""
    B, F = raw.shape
    out, mean = np.empty_like(raw), known[0]
    scale = raw.dtype.type(1.0) / np.sqrt(known[1] + raw.dtype.type(eps))
    for d in range(B):
        for f in range(F):
            out[d, f] = (raw[d, f] - mean[f]) * scale[f]
    return out


@loose_kernel
def slope_means(slopes: Array, normed: Array, documents: float) -> Array:
    """Compute these documents' part of two means over `documents`: of slopes, and of slopes times features, [2, F]."""
    B, F = slopes.shape
    out = np.zeros((2, F), slopes.dtype)
    share = slopes.dtype.type(1.0 / documents)
    for d in range(B):
        for f in range(F):
            out[0, f] += slopes[d, f] * share
            out[1, f] += slopes[d, f] * normed[d, f] * share
    return out


@loose_kernel
def back(slopes: Array, normed: Array, known: Array, means: Array, eps: float) -> None:
    """Turn slopes by normalised features into those by raw ones, in place."""
    B, F = slopes.shape
    scale = slopes.dtype.type(1.0) / np.sqrt(known[1] + slopes.dtype.type(eps))
    for d in range(B):
        for f in range(F):
            slopes[d, f] = (slopes[d, f] - means[0, f] - normed[d, f] * means[1, f]) * scale[f]


@loose_kernel
def normalise_documents(raw: Array, eps: float) -> tuple[Array, Array]:
    """Normalise each document (LayerNorm); return its features, and its factor, [B]."""
    B, F = raw.shape
    out, scale = np.empty_like(raw), np.empty(B, raw.dtype)
    zero, share = raw.dtype.type(0.0), raw.dtype.type(1.0 / F)
    for d in range(B):
        mean, variance = zero, zero
        for f in range(F):
            mean += raw[d, f] * share
        for f in range(F):
            variance += (raw[d, f] - mean) * (raw[d, f] - mean) * share
        scale[d] = raw.dtype.type(1.0) / np.sqrt(variance + raw.dtype.type(eps))
        for f in range(F):
            out[d, f] = (raw[d, f] - mean) * scale[d]
    return out, scale


@loose_kernel
def back_documents(slopes: Array, normed: Array, scale: Array) -> None:
    """Do the same as `back` for LayerNorm, whose means are over each document's features."""
    B, F = slopes.shape
    zero, share = slopes.dtype.type(0.0), slopes.dtype.type(1.0 / F)
    for d in range(B):
        mean, along = zero, zero
        for f in range(F):
            mean += slopes[d, f] * share
            along += slopes[d, f] * normed[d, f] * share
        for f in range(F):
            slopes[d, f] = (slopes[d, f] - mean - normed[d, f] * along) * scale[d]
