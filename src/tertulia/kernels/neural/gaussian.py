"""The middle of a variational autoencoder of topics: BatchNorm, a draw from a Gaussian, its softmax, and the way back.

Rows of `raw` [B, 2K] hold mean and log variance of a document's Gaussian before their norm; `normal` [B, K] is its
draw, and `keep` [B, K] what dropout multiplies theta with.

A normalised log variance is at most the root of the batch's size. In a batch of thousands, one document far off all
others would have a variance beyond float32, and a gradient beside which nothing else counts; so it is held at e^10,
which no batch of up to a hundred documents reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.kernels.core.exp import exp
from tertulia.kernels.core.jit import loose_kernel

MOST_LOG_VARIANCE = 10.0


class Drawn(NamedTuple):
    """What the way back needs, too."""

    kl: float  # of all documents from the prior
    theta: Array  # [B, K] after dropout
    shares: Array  # [B, K] before it
    normed: Array  # [B, 2K]
    deviations: Array  # [B, K] of the Gaussians
    mean: Array  # [2K] of the batch
    variance: Array  # [2K]


class Slopes(NamedTuple):
    """The gradient by the inputs."""

    raw: Array  # [B, 2K]
    prior_mean: Array  # [K]
    prior_log_variance: Array  # [K]


@loose_kernel
def draw(raw: Array, normal: Array, keep: Array, prior_mean: Array, prior_log_variance: Array, eps: float) -> Drawn:
    """Theta of each document, and the divergence of all their Gaussians from the prior."""
    (B, F), K = raw.shape, normal.shape[1]
    mean, variance, scale = _statistics(raw, eps)
    normed = np.empty_like(raw)
    theta, shares, deviations = np.empty_like(normal), np.empty_like(normal), np.empty_like(normal)
    half, one, precision = raw.dtype.type(0.5), raw.dtype.type(1.0), np.exp(-prior_log_variance)
    most, kl = raw.dtype.type(MOST_LOG_VARIANCE), 0.0
    for d in range(B):
        for f in range(F):
            normed[d, f] = (raw[d, f] - mean[f]) * scale[f]
        part, top, total = raw.dtype.type(0.0), normed[d, 0], raw.dtype.type(0.0)
        for k in range(K):
            log_variance, away = min(normed[d, K + k], most), normed[d, k] - prior_mean[k]
            deviation = exp(half * log_variance)
            deviations[d, k] = deviation
            shares[d, k] = normed[d, k] + deviation * normal[d, k]
            part += (deviation * deviation + away * away) * precision[k] - one + prior_log_variance[k] - log_variance
        for k in range(K):
            top = max(top, shares[d, k])
        for k in range(K):
            shares[d, k] = exp(shares[d, k] - top)
            total += shares[d, k]
        inverse = one / total
        for k in range(K):
            shares[d, k] *= inverse
            theta[d, k] = shares[d, k] * keep[d, k]
        kl += half * part
    return Drawn(kl, theta, shares, normed, deviations, mean, variance)


@loose_kernel
def _statistics(raw: Array, eps: float) -> tuple[Array, Array, Array]:
    """Mean, variance, and one over deviation of each feature, [F]."""
    B, F = raw.shape
    mean, variance = np.zeros(F, raw.dtype), np.zeros(F, raw.dtype)
    share = raw.dtype.type(1.0 / B)
    for d in range(B):
        for f in range(F):
            mean[f] += raw[d, f] * share
    for d in range(B):
        for f in range(F):
            away = raw[d, f] - mean[f]
            variance[f] += away * away * share
    return mean, variance, raw.dtype.type(1.0) / np.sqrt(variance + raw.dtype.type(eps))


@loose_kernel
def back(
    drawn: Drawn, normal: Array, keep: Array, prior_mean: Array, prior_log_variance: Array, eps: float,
    theta_slopes: Array, kl_slope: float,
) -> Slopes:  # fmt: skip
    """The gradient of what has these slopes by theta and by the divergence."""
    B, K = normal.shape
    dtype = normal.dtype.type
    half, one, weight, most = dtype(0.5), dtype(1.0), dtype(kl_slope), dtype(MOST_LOG_VARIANCE)
    precision = np.exp(-prior_log_variance)
    by_mean, by_log_variance = np.zeros(K, normal.dtype), np.zeros(K, normal.dtype)
    slopes = np.empty_like(drawn.normed)
    for d in range(B):
        inner = dtype(0.0)
        for k in range(K):
            inner += theta_slopes[d, k] * drawn.theta[d, k]
        for k in range(K):
            away, deviation = drawn.normed[d, k] - prior_mean[k], drawn.deviations[d, k]
            score = drawn.shares[d, k] * (theta_slopes[d, k] * keep[d, k] - inner)
            pull = weight * away * precision[k]
            spread = deviation * deviation * precision[k]
            slopes[d, k] = score + pull
            free = half if drawn.normed[d, K + k] <= most else dtype(0.0)
            slopes[d, K + k] = free * (score * normal[d, k] * deviation + weight * (spread - one))
            by_mean[k] -= pull
            by_log_variance[k] += half * (weight * (one - spread) - pull * away)
    _back_through_norm(slopes, drawn.normed, drawn.variance, eps)
    return Slopes(slopes, by_mean, by_log_variance)


@loose_kernel
def _back_through_norm(slopes: Array, normed: Array, variance: Array, eps: float) -> None:
    """Turn slopes [B, F] by normalised features into those by raw ones, in place."""
    B, F = slopes.shape
    mean, along = np.zeros(F, slopes.dtype), np.zeros(F, slopes.dtype)
    share, one = slopes.dtype.type(1.0 / B), slopes.dtype.type(1.0)
    for d in range(B):
        for f in range(F):
            mean[f] += slopes[d, f] * share
            along[f] += slopes[d, f] * normed[d, f] * share
    scale = one / np.sqrt(variance + slopes.dtype.type(eps))
    for d in range(B):
        for f in range(F):
            slopes[d, f] = (slopes[d, f] - mean[f] - normed[d, f] * along[f]) * scale[f]
