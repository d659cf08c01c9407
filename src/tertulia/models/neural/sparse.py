"""Sparse product of a batch of bags of words with the first layer's weights.

Product and gradient are computed only for the words of the batch, a third of all or fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import I64, Array
from tertulia.kernels.neural import bag_products
from tertulia.models.neural.bags import Batch


class Rows(NamedTuple):
    """Some rows of a matrix that is zero elsewhere."""

    places: I64  # [U] ascending
    values: Array  # [U, H]

    def whole(self, height: int) -> Array:
        """Return the whole matrix."""
        matrix = np.zeros((height, self.values.shape[1]), self.values.dtype)
        matrix[self.places] = self.values
        return matrix


SlopesByName = dict[str, Array | Rows]  # a gradient, by weight


class ByWord(NamedTuple):
    """The bags of words of a batch, sorted by word."""

    words: I64  # [U] words that occur
    starts: I64  # [U + 1] where the entries of each begin
    holders: I64  # [N] the document
    counts: Array  # [N]


@dataclass(frozen=True)
class Bow:
    """The bags of words of a batch."""

    words: I64  # [N] the words of each document, one document after the other
    counts: Array  # [N]
    offsets: I64  # [B + 1] where each document starts
    V: int

    @classmethod
    def of(cls, batch: Batch, V: int, dtype: torch.dtype) -> Bow:
        """Make the bags of a batch."""
        counts = batch.counts if dtype == torch.float32 else batch.counts.astype(np.float64)
        return cls(batch.words, counts, batch.offsets, V)

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    @cached_property
    def tokens(self) -> Array:
        """The number of tokens of each document, [B]."""
        return bag_products.tokens(self.counts, self.offsets)

    @cached_property
    def by_word(self) -> ByWord:
        """The same bags, sorted by word."""
        return ByWord(*bag_products.by_word(self.words, self.counts, self.offsets, self.V))

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the bags with a [V, H] weight: [B, H]."""
        return torch.from_numpy(bag_products.times(self.words, self.counts, self.offsets, weight.numpy()))

    def times_slopes(self, slopes: Tensor) -> Rows:
        """Compute the gradient by that weight, from the gradient by the product."""
        index = self.by_word
        values = bag_products.times_slopes(index.starts, index.holders, index.counts, slopes.contiguous().numpy())
        return Rows(index.words, values)
