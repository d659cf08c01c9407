"""Gradients of single documents, clipped and added up on a grid, without a table of one document's gradient.

A row of a result depends on the same row of the arguments alone, and on how many columns there are: never on the other
documents. So a document that is added changes no other document's part of a sum, not even by a last bit.

The gradient of one document by a weight is an outer product of two vectors, left and right. Its squared norm is the
product of theirs. Entries are multiplied by the document's factor and truncated toward zero, which makes no norm
larger, and only then added up, as integers.
"""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.kernels.core.jit import kernel, loose_kernel


@loose_kernel
def times(x: Array, table: Array) -> Array:
    """Multiply each row of x [B, n] with a table [n, m]: [B, m]."""
    out = np.zeros((x.shape[0], table.shape[1]), x.dtype)
    for d in range(x.shape[0]):
        for i in range(table.shape[0]):
            factor = x[d, i]
            for j in range(table.shape[1]):
                out[d, j] += factor * table[i, j]
    return out


@loose_kernel
def times_transposed(x: Array, table: Array) -> Array:
    """Multiply each row of x [B, m] with a transposed table [n, m]: [B, n]."""
    out = np.empty((x.shape[0], table.shape[0]), x.dtype)
    for d in range(x.shape[0]):
        for i in range(table.shape[0]):
            total = x.dtype.type(0.0)
            for j in range(table.shape[1]):
                total += x[d, j] * table[i, j]
            out[d, i] = total
    return out


@kernel
def squared_norms(x: Array) -> F64:
    """Compute the squared norm of each row, in double precision."""
    out = np.zeros(x.shape[0])
    for d in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[d] += np.float64(x[d, j]) * np.float64(x[d, j])
    return out


@kernel
def squared_counts(counts: Array, offsets: I64) -> F64:
    """Compute the squared norm of each bag of words, in double precision."""
    out = np.zeros(len(offsets) - 1)
    for d in range(len(out)):
        for i in range(offsets[d], offsets[d + 1]):
            out[d] += np.float64(counts[i]) * np.float64(counts[i])
    return out


@kernel
def add_products(total: I64, left: Array, right: Array, factors: F64) -> None:
    """Add each document's product of its rows of left [B, n] and right [B, m] to the total [n, m]."""
    for d in range(left.shape[0]):
        if factors[d] != 0.0:
            for i in range(left.shape[1]):
                part = factors[d] * left[d, i]
                for j in range(right.shape[1]):
                    total[i, j] += np.int64(part * right[d, j])


@kernel
def add_bags(total: I64, words: I64, counts: Array, offsets: I64, right: Array, factors: F64) -> None:
    """Add each document's product of its bag of words and its row of right [B, m] to the total [V, m]."""
    for d in range(right.shape[0]):
        if factors[d] != 0.0:
            for i in range(offsets[d], offsets[d + 1]):
                part = factors[d] * counts[i]
                for j in range(right.shape[1]):
                    total[words[i], j] += np.int64(part * right[d, j])
