"""Smaller gradients that can still be summed: half precision, or only the blocks of weights that matter most.

In the usual top-k each party chooses its own entries. Their sum has no fixed shape and cannot be masked. Here parties
first sum the squared norms of blocks of weights, and then all send the same, largest blocks. A party keeps the rest of
its gradient and adds it to the next one (error feedback: Stich, Cordonnier and Jaggi, NeurIPS 2018).
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.errors import FormatError

BLOCK = 64  # weights in a block
_LARGEST_HALF = 60000.0  # a little below what half precision can hold


def to_half_precision(gradient: Array, weight: float) -> Array:
    """Round to half precision; the engine will multiply by the weight, so the range is kept free for that."""
    bound = _LARGEST_HALF / max(weight, 1.0)
    return np.clip(gradient, -bound, bound).astype(np.float16)


def block_norms(gradient: Array) -> F64:
    """Compute the squared norm of each block of weights."""
    norms: F64 = (_blocks(gradient).astype(np.float64) ** 2).sum(axis=1)
    return norms


def largest_blocks(norms: Array, share: float) -> I64:
    """Choose this share of the blocks, those with the largest norms, in order."""
    count = max(1, round(share * len(norms)))
    return np.sort(np.argsort(-norms, kind="stable")[:count])


def check_blocks(gradient: Array, chosen: I64) -> None:
    """Refuse blocks that a gradient does not have."""
    if chosen.size and chosen.max() >= -(-len(gradient) // BLOCK):
        raise FormatError("'blocks' names blocks beyond the gradient")


def select_blocks(gradient: Array, chosen: I64) -> Array:
    """Return the chosen blocks."""
    return _blocks(gradient)[chosen]


def clear_blocks(gradient: Array, chosen: I64) -> Array:
    """Return the gradient with zeros in the chosen blocks."""
    rest = _blocks(gradient).copy()
    rest[chosen] = 0
    return rest.ravel()[: len(gradient)]


def place_blocks(blocks: Array, chosen: I64, size: int) -> Array:
    """Build a whole gradient from the chosen blocks, zero elsewhere."""
    whole = np.zeros((-(-size // BLOCK), BLOCK), blocks.dtype)
    whole[chosen] = blocks
    return whole.ravel()[:size]


def _blocks(gradient: Array) -> Array:
    padded = np.zeros(-(-len(gradient) // BLOCK) * BLOCK, gradient.dtype)
    padded[: len(gradient)] = gradient
    return padded.reshape(-1, BLOCK)
