"""Alias tables (Walker, 1977; built in linear time by Vose, IEEE TSE 1991): draws from K weights in constant time.

A table is two arrays of K cells: a uniformly chosen cell j gives j with probability keep[j], and other[j] otherwise.
"""

from __future__ import annotations

from tertulia._arrays import F32, F64, I32
from tertulia.kernels.core.jit import kernel


@kernel
def build(weight: F64, keep: F32, other: I32, stack: I32) -> None:
    """Fill a table [K] from weights [K], none negative and not all zero; stack [K] is scratch.

    `weight` is overwritten.
    """
    K = weight.shape[0]
    scale = K / weight.sum()
    poor, rich = 0, K  # the poor grow from the stack's bottom, the rich from its top
    for k in range(K):
        weight[k] *= scale
        keep[k], other[k] = 1.0, k
        if weight[k] < 1.0:
            stack[poor] = k
            poor += 1
        else:
            rich -= 1
            stack[rich] = k
    while poor > 0 and rich < K:
        poor -= 1
        small, large = stack[poor], stack[rich]
        keep[small], other[small] = weight[small], large
        weight[large] -= 1.0 - weight[small]
        if weight[large] < 1.0:
            rich += 1
            stack[poor] = large
            poor += 1


@kernel
def draw(keep: F32, other: I32, u: float) -> int:
    """Draw from a table by u in [0, 1): its leading digits choose the cell, the others whether to keep it."""
    K = keep.shape[0]
    at = u * K
    j = min(int(at), K - 1)
    k: int = j if at - j < keep[j] else other[j]
    return k
