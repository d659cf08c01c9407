"""Work cut into blocks for threads. Kernels release the GIL, and no result depends on where the cuts fall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from threading import current_thread
from typing import Any, TypeVar

import numpy as np

from tertulia.arrays import Array

_T = TypeVar("_T")
_NAME = "tertulia-kernel"


def cuts(offsets: Array, parts: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of items, about equal in weight, given the items' offsets [n+1]; never an empty range.

    >>> cuts(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    goals = np.linspace(offsets[0], offsets[-1], parts + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(offsets, goals), len(offsets) - 1])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def even(n: int, parts: int) -> list[tuple[int, int]]:
    """Ranges of about as many of n items each.

    >>> even(5, 2)
    [(0, 2), (2, 5)]
    """
    edges = [n * part // parts for part in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def run(function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]], threads: int) -> list[_T]:
    """`[function(*job) for job in jobs]`, with up to `threads` jobs at a time; a job that calls `run` does so alone."""
    if threads == 1 or len(jobs) < 2 or current_thread().name.startswith(_NAME):
        return [function(*job) for job in jobs]
    return list(_pool(threads).map(lambda job: function(*job), jobs))


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Kept, for to start a thread takes milliseconds, as long as many a job."""
    return ThreadPoolExecutor(threads, thread_name_prefix=_NAME)
