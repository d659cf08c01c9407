"""The sweep at which training ends by itself, and the gap of its model to that of a long training."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.common import say
from benchmarks.sampler.curves import Point, auto
from benchmarks.sampler.trainers import Task
from benchmarks.sampler.worker import measure


class Comparison(NamedTuple):
    """The number of sweeps of `auto`, and its model compared with that of a long training."""

    sweeps: int
    gap: float  # in perplexity, as a share: above 0 where `auto` is worse
    npmi: float  # how much higher
    diversity: float


def auto_sweeps(
    corpus: str, K: int, sweeps: int, seeds: Sequence[int], before: Mapping[str, Point], *, keep: bool
) -> list[Comparison]:
    """Compare `auto` with a long training for each seed; results of `before`, by seed, are used again."""
    found = []
    for seed in seeds:
        ended = before.get(str(seed)) or auto(
            measure(Task("tertulia-auto", corpus, K, 0, seed=seed), keep=keep)["curve"]
        )
        long = measure(Task("tertulia-once", corpus, K, sweeps, seed=seed), keep=keep)["curve"][-1]
        more = (round(ended[score] - long[score], 4) for score in ("npmi", "diversity"))
        found.append(Comparison(int(ended["iterations"]), round(ended["ppl"] / long["ppl"] - 1.0, 5), *more))
        say(f"{corpus}: auto ended after {found[-1].sweeps} sweeps, {100 * found[-1].gap:.2f} % above {sweeps}")
    return found


def mean_of(found: Sequence[Comparison]) -> list[float]:
    """Return the means over seeds of sweeps and of the gap."""
    return [round(statistics.fmean(one.sweeps for one in found)), round(statistics.fmean(one.gap for one in found), 5)]
