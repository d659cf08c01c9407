"""The decoder: words scored under softmax(norm(theta beta)), forward and backward.

Its loss and gradient are three matrix products, and two passes over batch x vocabulary between them (`kernels.neural`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import Array
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.neural import experts, experts_by_document
from tertulia.models.neural.norms import EPS, SharedStatistics
from tertulia.models.neural.sparse import Bow


class BatchNormDecoder:
    """Words normalised over documents: by the batch's own statistics, or by everybody's.

    With theta centred, so is its product with beta, and BatchNorm only scales it.
    """

    loss: float  # the negative log likelihood of all words
    statistics: Array  # [2, V] mean and variance of theta beta

    def __init__(self, theta: Array, beta: Tensor, bow: Bow, known: SharedStatistics | None = None) -> None:
        self.beta, self.bow, self.documents = beta, bow, len(theta)
        self.theta = torch.from_numpy(experts.centre(theta, padded_width(len(theta) + 1)))
        self.product = beta.T @ self.theta  # [V, B], and the mean
        given, n = (_NONE[theta.dtype.type], len(theta)) if known is None else (known.statistics, known.documents)
        found = experts.normalise(self.product.numpy(), self.documents, given, float(n), EPS)
        self.statistics, self.scale, self.shifts = found.statistics, found.scale, found.shifts
        self.loss, self.rates = experts.score(self.product.numpy(), found.shifts, found.totals, bow.tokens, bow.by_word)

    def slope_means(self, documents: float) -> Array:
        """The batch's part of the mean slopes over so many documents, [2, V]."""
        return experts.slope_means(self.product.numpy(), self.shifts, self.rates, self.bow.by_word, documents)

    def back(self, means: Array | None = None) -> tuple[Array, Array]:
        """The gradient by theta, [B, K], and by beta, [K, V]; ends the use of this object."""
        known = _NONE[self.scale.dtype.type] if means is None else means
        experts.slopes(
            self.product.numpy(), self.shifts, self.rates, self.bow.by_word, self.documents, self.scale, known
        )
        by_theta = (self.beta @ self.product).numpy()
        by_beta = (self.theta @ self.product.T).numpy()
        if means is None:
            return experts.centre_back(by_theta, self.documents), by_beta
        return np.ascontiguousarray(by_theta[:, : self.documents].T), by_beta


_NONE = {kind: np.empty((2, 0), kind) for kind in (np.float32, np.float64)}


class LayerNormDecoder:
    """Words normalised within each document."""

    def __init__(self, theta: Array, beta: Tensor, bow: Bow) -> None:
        self.theta, self.beta = torch.from_numpy(theta), beta
        self.slopes = self.theta @ beta  # [B, V] logits, and then their slopes
        self.loss = experts_by_document.score(self.slopes.numpy(), bow.words, bow.counts, bow.offsets, EPS)

    def back(self) -> tuple[Array, Array]:
        """The gradient by theta, [B, K], and by beta, [K, V]."""
        return (self.slopes @ self.beta.T).numpy(), (self.theta.T @ self.slopes).numpy()
