"""Where training ends by itself, and how far from there a long one still comes down."""

from __future__ import annotations

from typing import Any

from benchmarks.common import say
from benchmarks.sampler.curves import Point, auto
from benchmarks.sampler.trainers import Task
from benchmarks.sampler.worker import measure


def auto_sweeps(corpus: str, K: int, sweeps: int, *, keep: bool) -> list[float]:
    """The sweeps that `auto` made, and how much higher its perplexity is than that of a long training, as a share."""
    short = measure(Task("tertulia-auto", corpus, K, 0), keep=keep)
    long = measure(Task("tertulia-once", corpus, K, sweeps), keep=keep)
    return gap(auto(short["curve"]), long["curve"][-1])


def gap(ended: Point, long: Point) -> list[float]:
    """Sweeps, and the relative gap in perplexity."""
    found: list[Any] = [int(ended["iterations"]), round(ended["ppl"] / long["ppl"] - 1.0, 5)]
    say(f"auto ended after {found[0]} sweeps, {100 * found[1]:.2f} % above {long['iterations']:.0f}")
    return found
