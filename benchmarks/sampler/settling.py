"""Where training ends by itself, and how far from there a long one still comes down."""

from __future__ import annotations

from benchmarks.common import say
from benchmarks.sampler.curves import Point, auto
from benchmarks.sampler.trainers import Task
from benchmarks.sampler.worker import measure


def auto_sweeps(corpus: str, K: int, sweeps: int, ended: Point | None, *, keep: bool) -> list[float]:
    """The sweeps that `auto` made, and how much higher its perplexity is than that of a long training, as a share.

    Where `auto` has `ended` before, it is not run again.
    """
    if ended is None:
        ended = auto(measure(Task("tertulia-auto", corpus, K, 0), keep=keep)["curve"])
    long = measure(Task("tertulia-once", corpus, K, sweeps), keep=keep)["curve"][-1]
    gap = ended["ppl"] / long["ppl"] - 1.0
    say(f"{corpus}: auto ended after {ended['iterations']:.0f} sweeps, {100 * gap:.2f} % above {sweeps}")
    return [int(ended["iterations"]), round(gap, 5)]
