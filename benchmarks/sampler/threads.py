"""What a second thread brings, by the clock on the wall, and what it could bring on this machine at this time.

Two cores are seldom twice one: they share memory, power, and on rented machines a physical core. So beside each ratio
stands its ceiling: twice the speed of two trainings at the same time, one thread each, that have nothing to do with
each other. A ratio near its ceiling has lost nothing to sharing the work.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

from benchmarks.sampler.trainers import ALPHA, BETA
from tertulia.corpus import Corpus
from tertulia.kernels import lda


def threads_ratios(corpus: Corpus, K: int, sweeps: int, rounds: int = 5) -> dict[str, dict[str, float]]:
    """Two threads over one, for a whole training, its start, and ten sweeps of each sampler; and their ceilings.

    The medians of rounds in which one thread, two threads and two trainings take turns.
    """
    V, priors = len(corpus.vocabulary), (ALPHA / K, BETA)
    data = corpus.words, corpus.documents

    def train(sweeps: int, threads: int) -> Any:
        return lda.train(*data, V, K, *priors, sweeps, 1, threads=threads)

    state = train(1, 2)

    def sweep(sampler: Any, threads: int) -> Any:
        return lda.run(*data, state, 10, 1, sampler, threads=threads, phi="mean")

    kinds = {"train": partial(train, sweeps), "start": partial(train, 0)}
    kinds |= {sampler: partial(sweep, sampler) for sampler in ("dense", "sparse", "warp")}
    return {name: _compare(work, rounds) for name, work in kinds.items()}


def _compare(work: Callable[[int], Any], rounds: int) -> dict[str, float]:
    work(2)
    turns = [
        (_wall([partial(work, 1)]), _wall([partial(work, 2)]), _wall([partial(work, 1)] * 2)) for _ in range(rounds)
    ]
    return {
        "ratio": round(statistics.median(one / two for one, two, _ in turns), 2),
        "ceiling": round(statistics.median(2 * one / both for one, _, both in turns), 2),
    }


def _wall(tasks: list[Callable[[], Any]]) -> float:
    """Seconds to do all tasks at the same time."""
    threads = [Thread(target=task) for task in tasks]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began
