"""The gain of a second thread in wall time, beside the most that this machine allows at this time.

Two cores are seldom twice one: they share memory, power, and on rented machines a physical core. So beside each ratio
stands its ceiling: twice the speed of two trainings at the same time, one thread each, that have nothing to do with
each other. A ratio near its ceiling has lost nothing to sharing the work.

A training is one of 120 sweeps, start and all (`--quick`: 40); `auto` makes three to six times as many. Late sweeps are
those that come after it, without the checks and counts of `lda.run`, which a training does once.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

from benchmarks.common import say
from benchmarks.sampler.trainers import ALPHA, BETA
from tertulia.corpus import Corpus
from tertulia.kernels import lda
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked
from tertulia.kernels.lda.options import Learning

_LATE = 20  # sweeps
_MORE = 3  # times as many rounds of late sweeps, for they are short


def threads_ratios(corpus: Corpus, K: int, sweeps: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Compare two threads with one, for a whole training and for sweeps after it, and find their ceilings.

    Results are medians of rounds in which one thread, two threads and two trainings take turns.
    """
    V, priors, data = len(corpus.vocabulary), (ALPHA / K, BETA), (corpus.words, corpus.documents)

    def train(threads: int) -> lda.LDAState:
        return lda.train(*data, V, K, *priors, sweeps, 1, threads=threads, learning=Learning(alpha=True))

    state = train(2)
    counted = blocked.count(corpus.words, state.z, V, K)

    def late(threads: int) -> None:
        z, counts = state.z.copy(), counted._replace(cells=counted.cells.copy(), topics=counted.topics.copy())
        for s in range(_LATE):
            blocked.sweep(*data, z, counts, state.alpha, state.beta, derive(1, s), threads=threads)

    return {"train": _compare("train", train, rounds), "late": _compare("late", late, _MORE * rounds)}


def _compare(name: str, work: Callable[[int], Any], rounds: int) -> dict[str, Any]:
    work(2)
    turns = [
        (_wall([partial(work, 1)]), _wall([partial(work, 2)]), _wall([partial(work, 1)] * 2)) for _ in range(rounds)
    ]
    ratios, ceilings = [one / two for one, two, _ in turns], [2 * one / both for one, _, both in turns]
    say(f"two threads, {name}: {statistics.median(ratios):.2f} of {statistics.median(ceilings):.2f}")
    return {
        "ratio": round(statistics.median(ratios), 2),
        "ceiling": round(statistics.median(ceilings), 2),
        "each": [[round(ratio, 2), round(ceiling, 2)] for ratio, ceiling in zip(ratios, ceilings, strict=True)],
    }


def _wall(tasks: list[Callable[[], Any]]) -> float:
    """Measure the seconds to do all tasks at the same time."""
    threads = [Thread(target=task) for task in tasks]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began
