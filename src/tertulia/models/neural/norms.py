"""The encoder's norm: features [B, F] in, normalised features out, and slopes back. It has no scale and no shift."""

from __future__ import annotations

from typing import NamedTuple

from tertulia._arrays import Array
from tertulia.kernels.neural import norms

EPS = 1e-5  # of all norms


class SharedStatistics(NamedTuple):
    """The statistics of a norm over all parties' documents."""

    statistics: Array  # [2, F] mean and variance
    documents: float


class BatchNorm:
    """Features normalised over documents: by the batch's own statistics, or by everybody's."""

    def __init__(self, raw: Array, known: SharedStatistics | None = None) -> None:
        self.statistics = norms.statistics(raw) if known is None else known.statistics
        self.normed = norms.normalise(raw, self.statistics, EPS)

    def slope_means(self, slopes: Array, documents: float) -> Array:
        """The batch's part of the mean slopes over so many documents, [2, F]."""
        return norms.slope_means(slopes, self.normed, documents)

    def back(self, slopes: Array, means: Array | None = None) -> None:
        """Turn slopes by normalised features into those by raw ones, in place; `means` are the batch's own or given."""
        means = self.slope_means(slopes, len(slopes)) if means is None else means
        norms.back(slopes, self.normed, self.statistics, means, EPS)


class LayerNorm:
    """Features normalised within each document."""

    def __init__(self, raw: Array) -> None:
        self.normed, self._scale = norms.normalise_documents(raw, EPS)

    def back(self, slopes: Array) -> None:
        """Turn slopes by normalised features into those by raw ones, in place."""
        norms.back_documents(slopes, self.normed, self._scale)
