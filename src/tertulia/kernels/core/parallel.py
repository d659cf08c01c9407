"""Work cut into blocks for threads. Kernels release the GIL, and no result depends on where the cuts fall."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread, local
from typing import Any, TypeVar

import numpy as np

from tertulia._arrays import Array

_T = TypeVar("_T")
_Hand = SimpleQueue[Callable[[], None]]  # a thread that does what it is sent
_this_thread = local()
_idle: list[_Hand] = []  # kept: starting a thread takes about as long as a small job
os.register_at_fork(after_in_child=_idle.clear)  # a child process has none of its parent's threads


def cuts(offsets: Array, parts: int) -> list[tuple[int, int]]:
    """Ranges (first, last) of items, about equal in weight, given the items' offsets [n+1]; never an empty range.

    >>> cuts(np.array([0, 10, 20, 30, 40]), 2)
    [(0, 2), (2, 4)]
    """
    goals = np.linspace(offsets[0], offsets[-1], parts + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(offsets, goals), len(offsets) - 1])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def shares(offsets: Array, threads: int) -> list[tuple[int, int]]:
    """`cuts` for `run`, several a thread: equal in weight they are not equal in work, nor are threads in speed."""
    return cuts(offsets, threads if threads == 1 else 8 * threads)


def even(n: int, parts: int) -> list[tuple[int, int]]:
    """Ranges of about as many of n items each.

    >>> even(5, 2)
    [(0, 2), (2, 5)]
    """
    edges = [n * part // parts for part in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


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


def alone_or(threads: int) -> int:
    """So many threads, but one for who is called by one of them."""
    return 1 if getattr(_this_thread, "busy", False) else threads


def together(tasks: Sequence[Callable[[], Any]]) -> None:
    """Do all tasks at the same time, the first in this thread: each may wait for any other."""
    done: SimpleQueue[BaseException | None] = SimpleQueue()

    def one(task: Callable[[], Any]) -> None:
        before, error = alone_or(2) == 1, None
        _this_thread.busy = True
        try:
            task()
        except BaseException as raised:
            error = raised
        _this_thread.busy = before
        done.put(error)

    for task in tasks[1:]:
        _hand().put(partial(one, task))
    one(tasks[0])
    errors = [error for error in [done.get() for _ in tasks] if error]
    if errors:
        raise errors[0]


def _hand() -> _Hand:
    """An idle thread, or a new one."""
    try:
        return _idle.pop()
    except IndexError:
        hand: _Hand = SimpleQueue()
        Thread(target=_serve, args=(hand,), name="tertulia-kernel", daemon=True).start()
        return hand


def _serve(hand: _Hand) -> None:
    while True:
        hand.get()()
        _idle.append(hand)
