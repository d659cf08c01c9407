"""The encoder of a topic model, a variational autoencoder: softplus layers between matrix products, then the draw.

Theta is the softmax of a draw from a document's Gaussian. Rows of `normed` [B, 2K] hold mean and log variance of the
Gaussian, `normal` [B, K] is its draw, and `keep` [B, K] is dropout's factor of theta.

A log variance that BatchNorm has normalised is at most the root of the batch's size. In a batch of thousands, one
document far off all others would have a variance beyond float32, and a gradient beside which nothing else counts. So
the variance is capped at e^10, which no batch of up to a hundred documents reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.kernels.core.exp import exp, softplus
from tertulia.kernels.core.jit import loose_kernel

MOST_LOG_VARIANCE = 10.0


class ThetaDraw(NamedTuple):
    """The draws of a batch, with all that their gradient needs."""

    kl: float  # of all documents from the prior
    theta: Array  # [B, K] after dropout
    shares: Array  # [B, K] before it
    deviations: Array  # [B, K] of the Gaussians


class DrawSlopes(NamedTuple):
    """The gradient by the inputs of `draw`."""

    normed: Array  # [B, 2K]
    prior_mean: Array  # [K]
    prior_log_variance: Array  # [K]


@loose_kernel
def activate(values: Array, bias: Array) -> None:
    """Put softplus(values + bias) in the place of values [B, H]."""
    for d in range(values.shape[0]):
        for h in range(values.shape[1]):
            values[d, h] = softplus(values[d, h] + bias[h])


@loose_kernel
def activate_back(slopes: Array, values: Array) -> Array:
    """Turn slopes [B, H] by softplus's values into those by what it was given; return their sums, the bias's [H].

    The slope of softplus is a sigmoid, which is 1 - exp(-softplus).
    """
    one, sums = slopes.dtype.type(1.0), np.zeros(slopes.shape[1], slopes.dtype)
    for d in range(slopes.shape[0]):
        for h in range(slopes.shape[1]):
            slope = slopes[d, h] * (one - exp(-values[d, h]))
            slopes[d, h] = slope
            sums[h] += slope
    return sums


@loose_kernel
def draw(normed: Array, normal: Array, keep: Array, prior_mean: Array, prior_log_variance: Array) -> ThetaDraw:
    """Draw theta of each document, and compute the divergence of all their Gaussians from the prior."""
    B, K = normal.shape
    theta, shares, deviations = np.empty_like(normal), np.empty_like(normal), np.empty_like(normal)
    dtype = normed.dtype.type
    half, one, precision = dtype(0.5), dtype(1.0), np.exp(-prior_log_variance)
    most, kl = dtype(MOST_LOG_VARIANCE), 0.0
    for d in range(B):
        part, top, total = dtype(0.0), normed[d, 0], dtype(0.0)
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
    return ThetaDraw(kl, theta, shares, deviations)


@loose_kernel
def draw_back(
    drawn: ThetaDraw, normed: Array, normal: Array, keep: Array, prior_mean: Array, prior_log_variance: Array,
    theta_slopes: Array,
) -> DrawSlopes:  # fmt: skip
    """Compute the gradient of the divergence plus a function that has these slopes by theta."""
    B, K = normal.shape
    dtype = normal.dtype.type
    half, one, most = dtype(0.5), dtype(1.0), dtype(MOST_LOG_VARIANCE)
    precision = np.exp(-prior_log_variance)
    by_mean, by_log_variance = np.zeros(K, normal.dtype), np.zeros(K, normal.dtype)
    slopes = np.empty_like(normed)
    for d in range(B):
        inner = dtype(0.0)
        for k in range(K):
            inner += theta_slopes[d, k] * drawn.theta[d, k]
        for k in range(K):
            away, deviation = normed[d, k] - prior_mean[k], drawn.deviations[d, k]
            score = drawn.shares[d, k] * (theta_slopes[d, k] * keep[d, k] - inner)
            pull = away * precision[k]
            spread = deviation * deviation * precision[k]
            slopes[d, k] = score + pull
            free = half if normed[d, K + k] <= most else dtype(0.0)
            slopes[d, K + k] = free * (score * normal[d, k] * deviation + (spread - one))
            by_mean[k] -= pull
            by_log_variance[k] += half * ((one - spread) - pull * away)
    return DrawSlopes(slopes, by_mean, by_log_variance)
