"""A batch of bags of words as tensors, and the two layers that are as wide as the vocabulary.

The first is computed for the words that a batch holds, a third of all or fewer; the second makes its loss and gradient
in one go, with as few passes over batch x vocabulary as there can be.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tertulia.models.bags import Batch


class Bow(NamedTuple):
    """The bags of words of a batch."""

    words: Tensor  # [N] the words of each document, one document after the other
    counts: Tensor  # [N]
    offsets: Tensor  # [B] where each document starts
    rows: Tensor  # [N] the document of each word
    present: Tensor  # [U] the distinct words of the batch
    columns: Tensor  # [N] which of these each word is

    @classmethod
    def of(cls, batch: Batch, dtype: torch.dtype) -> Bow:
        """Index a batch."""
        present, columns = np.unique(batch.words, return_inverse=True)
        rows = np.repeat(np.arange(batch.size), np.diff(batch.offsets))
        counts = torch.from_numpy(batch.counts).to(dtype)
        words, offsets, *rest = map(torch.from_numpy, (batch.words, batch.offsets[:-1], rows, present, columns))
        return cls(words, counts, offsets, *rest)

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.offsets)

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the bags with a [V, H] weight: [B, H]."""
        product: Tensor = _Times.apply(weight, self)  # type: ignore[no-untyped-call]
        return product

    def row_sums(self) -> Tensor:
        """The number of tokens of each document, [B]."""
        return torch.zeros(self.size, dtype=self.counts.dtype).index_add_(0, self.rows, self.counts)

    def row_dots(self, logits: Tensor) -> Tensor:
        """The sum of each document's [B, V] logits over its own tokens, [B]."""
        own = self.counts * logits[self.rows, self.words]
        return torch.zeros(self.size, dtype=own.dtype).index_add(0, self.rows, own)


class _Times(torch.autograd.Function):
    """Bags times weight; its gradient is computed for the words that occur, by one small dense product."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bow: Bow) -> Tensor:
        ctx.bow, ctx.shape = bow, weight.shape
        return functional.embedding_bag(bow.words, weight, bow.offsets, mode="sum", per_sample_weights=bow.counts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (g,) = gradients  # [B, H]
        bow: Bow = ctx.bow
        dense = torch.zeros(bow.size, len(bow.present), dtype=g.dtype)
        dense[bow.rows, bow.columns] = bow.counts
        return torch.zeros(ctx.shape, dtype=g.dtype).index_copy_(0, bow.present, dense.T @ g), None


class Decoded(NamedTuple):
    """What the decoder makes of a batch with the batch's own statistics."""

    loss: Tensor  # the negative log likelihood of all words
    mean: Tensor  # [V] of theta beta
    variance: Tensor  # [V]


def decode(theta: Tensor, beta: Tensor, bow: Bow, eps: float) -> Decoded:
    """Score a batch's words under softmax(BatchNorm(theta beta)), with a gradient for theta and beta."""
    centred = theta - theta.mean(dim=0)
    loss, variance = _Decode.apply(centred, beta, bow, eps)  # type: ignore[no-untyped-call]
    return Decoded(loss, theta.detach().mean(dim=0) @ beta.detach(), variance)


class _Decode(torch.autograd.Function):
    """Words under softmax(BatchNorm(theta beta)); loss and gradient in one go, over one [B, V] array and its exponent.

    Theta comes centred, so its product with beta is, and with the columns of beta scaled it is the normalised one.
    """

    @staticmethod
    def forward(ctx: Any, theta: Tensor, beta: Tensor, bow: Bow, eps: float) -> tuple[Tensor, Tensor]:
        B = bow.size
        logits = theta @ beta  # [B, V]
        variance = (logits * logits).sum(dim=0) / B
        scale = torch.rsqrt(variance + eps)
        logits *= scale  # now within sqrt(B) of 0: no maximum need be taken out before exp
        tokens = bow.row_sums()
        own = torch.dot(bow.counts, logits[bow.rows, bow.words])
        dy = logits.exp()
        totals = dy.sum(dim=1)
        loss = torch.dot(tokens, totals.log()) - own
        dy *= (tokens / totals)[:, None]
        dy[bow.rows, bow.words] -= bow.counts  # the gradient of the normalised logits
        inner = theta.T @ dy  # [K, V]
        # BatchNorm takes out of dy its mean, which centred theta does anyway, and its part along the logits.
        along = (beta * inner).sum(dim=0).mul_(scale / B)
        dy.addcmul_(logits, along, value=-1.0)
        scaled = beta * scale
        ctx.dtheta = dy @ scaled.T
        ctx.dbeta = torch.addcmul(inner, (theta.T @ theta) @ scaled, along, value=-1.0).mul_(scale)
        ctx.mark_non_differentiable(variance)
        return loss, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        g = gradients[0]
        return g * ctx.dtheta, ctx.dbeta.mul_(g), None, None
