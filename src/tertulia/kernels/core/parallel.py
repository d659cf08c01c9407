"""Work cut into blocks for threads. Kernels release the GIL, and no result depends on where the cuts fall."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import local
from typing import Any, TypeVar

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.errors import InputError

_T = TypeVar("_T")
_this_thread = local()
# Kept, for starting a thread takes as long as a small job. There is no bound on its threads but this one: tasks that
# wait for each other must all run. A pool of our own took 27 µs to have two empty tasks done, and this one 40; training
# takes the same time with either (300,000 tokens, 50 topics, 40 sweeps, two threads: 1.14 and 1.12 CPU seconds).
_MOST_THREADS = 10_000


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tertulia-kernel")


def _replace_pool() -> None:
    """Start anew in a child process, which has none of its parent's threads."""
    global _pool
    _pool = _new_pool()


_pool = _new_pool()
os.register_at_fork(after_in_child=_replace_pool)


def cuts(offsets: Array, parts: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of items, about equal in weight, given the items' offsets [n+1]; never an empty range.

    >>> cuts(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    goals = np.linspace(offsets[0], offsets[-1], parts + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(offsets, goals), len(offsets) - 1])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def shares(offsets: Array, threads: int) -> list[tuple[int, int]]:
    """`cuts` for `run`, several per thread: equal in weight is not equal in work, nor are threads equal in speed."""
    return cuts(offsets, threads if threads == 1 else 8 * threads)


def even(n: int, parts: int) -> list[tuple[int, int]]:
    """Ranges of about as many of n items each.

    >>> even(5, 2)
    [(0, 2), (2, 5)]
    """
    edges = [n * part // parts for part in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def threads_for(n_jobs: int) -> int:
    """As many threads as scikit-learn's `n_jobs` asks for: -1 stands for all cores that this process may use."""
    if n_jobs < 1 and n_jobs != -1:
        raise InputError(f"n_jobs = {n_jobs}: write a number of threads, or -1 for all cores")
    return n_jobs if n_jobs > 0 else len(os.sched_getaffinity(0))


def run(function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]], threads: int) -> list[_T]:
    """`[function(*job) for job in jobs]`, with up to `threads` jobs at a time; a job that calls `run` does so alone."""
    threads = min(alone_or(threads), len(jobs))
    if threads < 2:
        return [function(*job) for job in jobs]
    waiting, results = deque(enumerate(jobs)), {}

    def work() -> None:
        while True:
            try:
                i, job = waiting.popleft()
            except IndexError:
                return
            results[i] = function(*job)

    together([work] * threads)
    return [results[i] for i in range(len(jobs))]


def run_meeting(function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]]) -> list[_T]:
    """`[function(gate, *job) for job in jobs]`, all at the same time: they may `meet` at the gate.

    As many as `alone_or` allows, or they would wait for ever. Where one raises, the others learn of it at the gate.
    """
    gate, results = np.zeros(3, dtype=np.int64), {}

    def work(i: int) -> None:
        with _shut_on_failure(gate):
            results[i] = function(gate, *jobs[i])

    with _shut_on_failure(gate):  # some threads may have begun before one could not be had
        together([partial(work, i) for i in range(len(jobs))])
    return [results[i] for i in range(len(jobs))]


@contextmanager
def _shut_on_failure(gate: I64) -> Iterator[None]:
    try:
        yield
    except BaseException:
        gate[1] = 1
        raise


def alone_or(threads: int) -> int:
    """So many threads, but one where the caller is itself one of several."""
    return 1 if getattr(_this_thread, "busy", False) else threads


def together(tasks: Sequence[Callable[[], Any]]) -> None:
    """Do all tasks at the same time, the first in this thread: each may wait for any other."""
    others = [_pool.submit(_do, task) for task in tasks[1:]]
    try:
        _do(tasks[0])
    finally:
        wait(others)
    for other in others:
        other.result()  # raises what the task raised


def _do(task: Callable[[], Any]) -> None:
    before = alone_or(2) == 1
    _this_thread.busy = True
    try:
        task()
    finally:
        _this_thread.busy = before
