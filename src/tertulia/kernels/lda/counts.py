"""Counts of tokens: of each word in each topic, and of each item in a list."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I32, I64, Array
from tertulia.kernels.core.jit import freeze, lean_kernel


def counts(words: I32, z: I32, V: int, K: int) -> I32:
    """Count the tokens of word w in topic k, [V, K].

    One thread does it: two that each look for their own words take twice as long (1.3 million tokens: 12 and 6 ms).
    """
    cwk = np.zeros((V, K), dtype=np.int32)
    count_tokens(freeze(words, np.int32), freeze(z, np.int32), cwk)
    return cwk


def frequency(x: I32, n: int) -> I64:
    """Count how often each of 0..n-1 occurs in x. Numpy's `bincount` would make a copy of twice the size."""
    seen = np.zeros(n, dtype=np.int64)
    count_items(freeze(x, np.int32), seen)
    return seen


@lean_kernel
def count_tokens(words: I32, z: I32, cells: Array) -> None:
    """Add all tokens to cells [V, K or more]."""
    for i in range(z.shape[0]):
        cells[words[i], z[i]] += 1


@lean_kernel
def count_items(x: I32, seen: I64) -> None:
    """Add to seen [n] how often each of 0..n-1 occurs in x."""
    for i in range(x.shape[0]):
        seen[x[i]] += 1
