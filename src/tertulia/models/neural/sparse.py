"""A batch of bags of words, and the two layers that are as wide as the vocabulary.

The first is computed for the words that a batch holds, a third of all or fewer, and so is its gradient; the second
makes its loss and gradient in one go: three matrix products, and two passes over batch x vocabulary between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tertulia._arrays import I64, Array
from tertulia.kernels.core.vectors import padded
from tertulia.kernels.neural import bag_products, experts
from tertulia.models.neural.bags import Batch


class Rows(NamedTuple):
    """Some rows of a matrix that is zero elsewhere."""

    places: I64  # [U] ascending
    values: Array  # [U, H]

    def spread(self, height: int) -> Array:
        """The whole matrix."""
        whole = np.zeros((height, self.values.shape[1]), self.values.dtype)
        whole[self.places] = self.values
        return whole


Slopes = dict[str, Array | Rows]  # a gradient, by weight


class ByWord(NamedTuple):
    """The bags of words of a batch, word after word."""

    words: I64  # [U] those that occur
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
        """Take them from a batch."""
        counts = batch.counts if dtype == torch.float32 else batch.counts.astype(np.float64)
        return cls(batch.words, counts, batch.offsets, V)

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.offsets) - 1

    @cached_property
    def rows(self) -> I64:
        """The document of each word, [N]."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    @cached_property
    def tokens(self) -> Array:
        """The number of tokens of each document, [B]."""
        return bag_products.tokens(self.counts, self.offsets)

    @cached_property
    def by_word(self) -> ByWord:
        """The same, word after word."""
        return ByWord(*bag_products.by_word(self.words, self.counts, self.offsets, self.V))

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the bags with a [V, H] weight: [B, H]."""
        if not weight.requires_grad:
            return self._times(weight)
        product: Tensor = _Times.apply(weight, self)  # type: ignore[no-untyped-call]
        return product

    def _times(self, weight: Tensor) -> Tensor:
        return torch.from_numpy(bag_products.times(self.words, self.counts, self.offsets, weight.numpy()))

    def times_slopes(self, slopes: Tensor) -> Rows:
        """The gradient by that weight, from the one by the product."""
        index = self.by_word
        values = bag_products.times_slopes(index.starts, index.holders, index.counts, slopes.contiguous().numpy())
        return Rows(index.words, values)

    def row_dots(self, logits: Tensor) -> Tensor:
        """The sum of each document's [B, V] logits over its own tokens, [B]."""
        rows = torch.from_numpy(self.rows)
        own = torch.from_numpy(self.counts) * logits[rows, torch.from_numpy(self.words)]
        return torch.zeros(self.size, dtype=own.dtype).index_add(0, rows, own)


class _Times(torch.autograd.Function):
    """Bags times weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bow: Bow) -> Tensor:
        ctx.bow = bow
        return bow._times(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        bow: Bow = ctx.bow
        return torch.from_numpy(bow.times_slopes(gradients[0]).spread(bow.V)), None


class Decoded(NamedTuple):
    """What the decoder makes of a batch with the batch's own statistics."""

    loss: float  # the negative log likelihood of all words
    mean: Array  # [V] of theta beta
    variance: Array  # [V]
    theta: Array  # [B, K] the gradient by theta
    beta: Array  # [K, V] the one by beta


def decode(theta: Array, beta: Tensor, bow: Bow, eps: float) -> Decoded:
    """Score a batch's words under softmax(BatchNorm(theta beta)).

    With theta centred, so is its product with beta: BatchNorm only scales it.
    """
    B = len(theta)
    centred = torch.from_numpy(experts.centred(theta, padded(B + 1)))
    product = beta.T @ centred  # [V, B], and the mean
    logits, index = product.numpy(), bow.by_word
    mean, variance, scale, shifts, totals = experts.normalise(logits, B, eps)
    loss, rates = experts.score(logits, shifts, totals, bow.tokens, index)
    experts.slopes(logits, shifts, rates, index, B, scale)  # all 0 beyond the last document
    by_theta = experts.centred_slopes((beta @ product).numpy(), B)
    return Decoded(loss, mean, variance, by_theta, (centred @ product.T).numpy())
