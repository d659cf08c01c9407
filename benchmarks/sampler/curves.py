"""Curves of all trainers, and how soon ours has what a peer ends with.

`to_default` is a peer's CPU seconds for all its iterations over ours for the fewest sweeps from which on we are as
good: in perplexity at most the peer's, in NPMI and diversity at least the peer's less a margin for noise. None where we
are not as good with the most sweeps either. Seeds are compared one by one, and the median counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.common import say
from benchmarks.sampler.trainers import OWN_MARKS, Task
from benchmarks.sampler.worker import is_kept, measure

OURS, AUTO = "tertulia", "tertulia auto"
SCORES = ("ppl", "npmi", "diversity")
SLACK = {"npmi": 0.005, "diversity": 0.02}  # what seeds differ by
EARLY = 100  # iterations of a peer
_VARIATIONAL = {"gensim": 10, "sklearn": 10}  # passes; they need few, and a thousand would take days
Point = Mapping[str, float]
Runs = dict[str, list[dict[str, Any]]]  # trainer -> a run per seed
Holds = Callable[[Point, Point], bool]  # ours, the peer's


class Plan(NamedTuple):
    """What is to be trained."""

    peers: Sequence[str]
    iterations: int  # of peers
    most: int = OWN_MARKS[-1]  # sweeps of ours
    keep: bool = False  # our curves, too
    only_kept: bool = False  # no peer is trained


def train_all(corpus: str, K: int, seeds: Sequence[int], plan: Plan, *, fixed: bool = False) -> Runs:
    """The curves of everybody; peers of which a curve is missing are left out if none may be trained."""
    found: Runs = {}
    for seed in seeds:
        for peer in plan.peers:
            iterations = min(_VARIATIONAL.get(peer, plan.iterations), plan.iterations)
            task = Task(peer, corpus, K, iterations, fixed, seed=seed)
            if plan.only_kept and not is_kept(task):
                say(f"{task.name}: no curve was kept")
                continue
            found.setdefault(peer, []).append({**measure(task, keep=True), "seed": seed})
        ours = measure(Task(OURS, corpus, K, plan.most, fixed, seed=seed), keep=plan.keep)
        found.setdefault(OURS, []).append({**ours, "seed": seed})
    return found


def marks(curve: Sequence[Point]) -> list[Point]:
    """The points whose iterations were asked for."""
    return [point for point in curve if not point.get("auto")]


def auto(curve: Sequence[Point]) -> Point:
    """The point where training ended by itself."""
    return next(point for point in curve if point.get("auto"))


def as_good(score: str) -> Holds:
    """Whether ours has the peer's score, or `all` of them."""
    if score == "all":
        return lambda own, peer: all(as_good(each)(own, peer) for each in SCORES)
    if score == "ppl":
        return lambda own, peer: own["ppl"] <= peer["ppl"]
    return lambda own, peer: own[score] >= peer[score] - SLACK[score]


def seconds_to(curve: Sequence[Point], goal: Point, holds: Holds) -> float | None:
    """Our CPU seconds for the fewest sweeps from which on a criterion holds; None if it does not hold at the end."""
    found = None
    for point in reversed(marks(curve)):
        if not holds(point, goal):
            break
        found = point["cpu_s"]
    return found


def early(curve: Sequence[Point]) -> Point:
    """A peer after a hundred iterations, or at the end of a shorter run."""
    return [point for point in curve if point["iterations"] <= EARLY][-1]


def ratios(runs: Runs, peer: str, score: str, goal: Callable[[Sequence[Point]], Point]) -> list[float | None]:
    """The peer's seconds to its goal over ours to be as good, for each seed that both have."""
    ours, found = {run["seed"]: run["curve"] for run in runs[OURS]}, []
    for run in runs[peer]:
        target = goal(run["curve"])
        mine = seconds_to(ours[run["seed"]], target, as_good(score))
        found.append(None if mine is None else round(target["cpu_s"] / mine, 2))
    return found


def median(values: Sequence[float | None]) -> float | None:
    """The median, where None is worse than any number."""
    missing = sum(value is None for value in values)
    return None if 2 * missing >= len(values) else round(statistics.median(value or 0.0 for value in values), 2)


def to_default(runs: Runs) -> dict[str, dict[str, list[float | None]]]:
    """For each peer and score the ratios of all seeds."""
    kinds = (*SCORES, "all")
    return {peer: {s: ratios(runs, peer, s, lambda c: c[-1]) for s in kinds} for peer in runs if peer != OURS}


def to_early(runs: Runs) -> dict[str, list[float | None]]:
    """For each peer the ratios to its perplexity after a hundred iterations."""
    return {peer: ratios(runs, peer, "ppl", early) for peer in runs if peer != OURS}


def ends(runs: Runs) -> dict[str, list[Point]]:
    """Where everybody ends, ours after the most sweeps and by itself: a point per seed."""
    found: dict[str, list[Point]] = {who: [marks(run["curve"])[-1] for run in several] for who, several in runs.items()}
    return {**found, AUTO: [auto(run["curve"]) for run in runs[OURS]]}


def summary(runs: Runs) -> dict[str, Any]:
    """Everything about one corpus and number of topics: medians, and each seed's ratios beside them."""
    each, soon, last = to_default(runs), to_early(runs), ends(runs)
    return {
        "to_default": {peer: {s: median(v) for s, v in scores.items()} for peer, scores in each.items()},
        "to_default_each": each,
        "early": {peer: median(values) for peer, values in soon.items()},
        "end": {who: [_typical(points, score) for score in SCORES] for who, points in last.items()},
        "end_each": {who: [[round(p[s], 4) for s in SCORES] for p in points] for who, points in last.items()},
        "auto": {str(run["seed"]): auto(run["curve"]) for run in runs[OURS]},
        "cpu_s": {who: round(_typical(points, "cpu_s"), 2) for who, points in last.items()},
        "rss_mb": {who: round(statistics.median(run["rss_mb"] for run in several)) for who, several in runs.items()},
        "load": {who: [round(run["load"], 1) for run in several] for who, several in runs.items()},
        "seeds": {who: [run["seed"] for run in several] for who, several in runs.items()},
    }


def _typical(points: Sequence[Point], name: str) -> float:
    return round(statistics.median(point[name] for point in points), 4)
