"""Work cut into blocks for threads. Kernels release the GIL, and no result depends on where the cuts fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from tertulia.arrays import Array

_T = TypeVar("_T")


def cuts(offsets: Array, parts: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of items, about equal in weight, given the items' offsets [n+1]; never an empty range.

    >>> cuts(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    goals = np.linspace(offsets[0], offsets[-1], parts + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(offsets, goals), len(offsets) - 1])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def run(
    function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]], threads: int, pool: ThreadPoolExecutor | None = None
) -> list[_T]:
    """`[function(*job) for job in jobs]`, with up to `threads` jobs at a time; many short calls share a pool."""
    if threads == 1 or len(jobs) < 2:
        return [function(*job) for job in jobs]
    if pool is not None:
        return list(pool.map(lambda job: function(*job), jobs))
    with ThreadPoolExecutor(threads) as own:
        return list(own.map(lambda job: function(*job), jobs))
