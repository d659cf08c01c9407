"""Threads: work is cut into blocks. Kernels release the GIL, and no result depends on where the cuts fall."""

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
# The pool is kept, for starting a thread takes as long as a small job. The bound is high, for tasks that wait for each
# other must all run. A pool of our own ran two empty tasks in 27 µs, and this one in 40; training takes the same time
# with either (300,000 tokens, 50 topics, 40 sweeps, two threads: 1.14 and 1.12 CPU seconds).
_MOST_THREADS = 10_000


def _new_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="tertulia-kernel")


def _replace_pool() -> None:
    """Make a new pool in a child process, which has none of its parent's threads."""
    global _pool
    _pool = _new_pool()


_pool = _new_pool()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_replace_pool)


def cuts(offsets: Array, parts: int) -> list[tuple[int, int]]:
    """Cut items into ranges (first, last) of about equal weight, given their offsets [n+1]; no range is empty.

    >>> cuts(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    goals = np.linspace(offsets[0], offsets[-1], parts + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(offsets, goals), len(offsets) - 1])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def shares(offsets: Array, threads: int) -> list[tuple[int, int]]:
    """Cut items for `run`, several ranges per thread: equal weight is not equal work, nor are threads equally fast."""
    return cuts(offsets, threads if threads == 1 else 8 * threads)


def even(n: int, parts: int) -> list[tuple[int, int]]:
    """Cut n items into ranges of about equal length.

    >>> even(5, 2)
    [(0, 2), (2, 5)]
    """
    edges = [n * part // parts for part in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def threads_for(n_jobs: int) -> int:
    """Return the number of threads that scikit-learn's `n_jobs` asks for; -1 stands for all cores of this process."""
    if n_jobs < 1 and n_jobs != -1:
        raise InputError(f"n_jobs = {n_jobs}: write a number of threads, or -1 for all cores")
    if n_jobs > 0:
        return n_jobs
    affinity = getattr(os, "sched_getaffinity", None)  # only Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def run(function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]], threads: int) -> list[_T]:
    """Return `[function(*job) for job in jobs]`, up to `threads` jobs at a time; a nested `run` has one thread."""
    threads = min(threads_allowed(threads), len(jobs))
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

    run_at_once([work] * threads)
    return [results[i] for i in range(len(jobs))]


def run_with_barrier(function: Callable[..., _T], jobs: Sequence[tuple[Any, ...]]) -> list[_T]:
    """Return `[function(barrier, *job) for job in jobs]`, all at once: jobs may wait for each other (`barrier_wait`).

    There may be as many jobs as `threads_allowed` returns; with more they would wait for ever. If one raises, the
    others return from the barrier.
    """
    barrier, results = np.zeros(3, dtype=np.int64), {}

    def work(i: int) -> None:
        with _release_on_failure(barrier):
            results[i] = function(barrier, *jobs[i])

    with _release_on_failure(barrier):  # some threads may have started before one failed to
        run_at_once([partial(work, i) for i in range(len(jobs))])
    return [results[i] for i in range(len(jobs))]


@contextmanager
def _release_on_failure(barrier: I64) -> Iterator[None]:
    try:
        yield
    except BaseException:
        barrier[1] = 1
        raise


def threads_allowed(threads: int) -> int:
    """Return `threads`, or one if the caller is itself one of several threads."""
    return 1 if getattr(_this_thread, "busy", False) else threads


def run_at_once(tasks: Sequence[Callable[[], Any]]) -> None:
    """Run all tasks at the same time, the first in this thread: each may wait for any other."""
    others = [_pool.submit(_do, task) for task in tasks[1:]]
    try:
        _do(tasks[0])
    finally:
        wait(others)
    for other in others:
        other.result()  # raises what the task raised


def _do(task: Callable[[], Any]) -> None:
    before = threads_allowed(2) == 1
    _this_thread.busy = True
    try:
        task()
    finally:
        _this_thread.busy = before
