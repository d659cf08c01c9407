"""Curves of all trainers, and how soon ours reaches the final scores of a peer.

`to_default` is a peer's CPU seconds for all its iterations over ours for the fewest sweeps from which on we are as
good: in perplexity at most the peer's, in NPMI and diversity at least the peer's less a margin for noise. The last of
ours is where training ends by itself, if that is later than all marks. None where we are not as good there either.
Both sides are means over the seeds that both have: one seed of ours has nothing to do with the same number in a peer,
and seeds differ by more than the margins.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.common import say
from benchmarks.sampler import curve_store
from benchmarks.sampler.trainers import OWN_MARKS, Task
from benchmarks.sampler.worker import measure

OURS, AUTO = "tertulia", "tertulia auto"
SCORES = ("ppl", "npmi", "diversity")
NUMBERS = ("iterations", "cpu_s", "wall_s", *SCORES)
SLACK = {"npmi": 0.005, "diversity": 0.02}  # what seeds differ by
EARLY = 100  # iterations of a peer
_VARIATIONAL = {"gensim": 10, "sklearn": 10}  # passes; they need few, and a thousand would take days
Point = Mapping[str, float]
Runs = dict[str, list[dict[str, Any]]]  # trainer -> a run per seed
Holds = Callable[[Point, Point], bool]  # ours, the peer's


class Plan(NamedTuple):
    """The trainings to run."""

    peers: Sequence[str]
    iterations: int  # of peers
    most: int = OWN_MARKS[-1]  # sweeps of ours
    keep: bool = False  # our curves, too
    only_kept: bool = False  # no peer is trained


def train_all(corpus: str, K: int, seeds: Sequence[int], plan: Plan, *, fixed: bool = False) -> Runs:
    """Train all; peers without a stored curve are left out if no peer may be trained."""
    found: Runs = {}
    for seed in seeds:
        for peer in plan.peers:
            iterations = min(_VARIATIONAL.get(peer, plan.iterations), plan.iterations)
            task = Task(peer, corpus, K, iterations, fixed, seed=seed)
            curve = curve_store.find_or_none(task.name, anywhere=True) if plan.only_kept else measure(task, keep=True)
            if curve is None:
                say(f"{task.name}: no curve was kept")
                continue
            found.setdefault(peer, []).append({**curve, "seed": seed})
        ours = measure(Task(OURS, corpus, K, plan.most, fixed, seed=seed), keep=plan.keep)
        found.setdefault(OURS, []).append({**ours, "seed": seed})
    return found


def marks(curve: Sequence[Point]) -> list[Point]:
    """Return the points at the requested iterations."""
    return [point for point in curve if not point.get("auto")]


def auto(curve: Sequence[Point]) -> Point:
    """Return the point where training ended by itself."""
    return next(point for point in curve if point.get("auto"))


def as_good(score: str) -> Holds:
    """Return a test of whether ours has the peer's score, or `all` of them."""
    if score == "all":
        return lambda own, peer: all(as_good(each)(own, peer) for each in SCORES)
    if score == "ppl":
        return lambda own, peer: own["ppl"] <= peer["ppl"]
    return lambda own, peer: own[score] >= peer[score] - SLACK[score]


def seconds_to(curve: Sequence[Point], goal: Point, holds: Holds) -> float | None:
    """Find our CPU seconds for the fewest sweeps from which on a criterion holds; None if it fails at the end."""
    found = None
    for point in reversed(marks(curve)):
        if not holds(point, goal):
            break
        found = point["cpu_s"]
    return found


def early(curve: Sequence[Point]) -> Point:
    """Return a peer's point after a hundred iterations, or at the end of a shorter run."""
    return [point for point in curve if point["iterations"] <= EARLY][-1]


def mean_curve(runs: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Compute the means over seeds of all numbers, at the marks that every seed has."""
    curves = [{point["iterations"]: point for point in marks(run["curve"])} for run in runs]
    shared = sorted(set.intersection(*map(set, curves)))
    return [{name: statistics.fmean(c[at][name] for c in curves) for name in NUMBERS} for at in shared]


def own_curve(runs: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Compute our means over seeds: at the marks, and where training ends by itself, if that is later."""
    found, ended = mean_curve(runs), [auto(run["curve"]) for run in runs]
    last = {name: statistics.fmean(point[name] for point in ended) for name in NUMBERS}
    return [*found, last] if last["iterations"] > found[-1]["iterations"] else found


def ratio(runs: Runs, peer: str, score: str, goal: Callable[[Sequence[Point]], Point]) -> float | None:
    """Divide the peer's seconds to its goal by ours to the same; None if ours does not reach it."""
    seeds = {run["seed"] for run in runs[peer]} & {run["seed"] for run in runs[OURS]}
    theirs, ours = ([run for run in runs[who] if run["seed"] in seeds] for who in (peer, OURS))
    target = goal(mean_curve(theirs))
    mine = seconds_to(own_curve(ours), target, as_good(score))
    return None if mine is None else round(target["cpu_s"] / mine, 2)


def to_default(runs: Runs) -> dict[str, dict[str, float | None]]:
    """Compute for each peer and score the ratio to the end of the peer."""
    kinds = (*SCORES, "all")
    return {peer: {s: ratio(runs, peer, s, lambda c: c[-1]) for s in kinds} for peer in runs if peer != OURS}


def to_early(runs: Runs) -> dict[str, float | None]:
    """Compute for each peer the ratio to its perplexity after a hundred iterations."""
    return {peer: ratio(runs, peer, "ppl", early) for peer in runs if peer != OURS}


def ends(runs: Runs) -> dict[str, list[Point]]:
    """Return the last point of each seed, by trainer; of ours after the most sweeps, and by itself."""
    found: dict[str, list[Point]] = {who: [marks(run["curve"])[-1] for run in several] for who, several in runs.items()}
    return {**found, AUTO: [auto(run["curve"]) for run in runs[OURS]]}


def summary(runs: Runs) -> dict[str, Any]:
    """Summarise one corpus and number of topics: means over seeds, and the end of each seed."""
    last = ends(runs)
    return {
        "to_default": to_default(runs),
        "early": to_early(runs),
        "end": {who: [_mean(points, score) for score in SCORES] for who, points in last.items()},
        "end_each": {who: [[round(p[s], 4) for s in SCORES] for p in points] for who, points in last.items()},
        "auto": {str(run["seed"]): auto(run["curve"]) for run in runs[OURS]},
        "cpu_s": {who: round(_mean(points, "cpu_s"), 2) for who, points in last.items()},
        "rss_mb": {who: round(statistics.median(run["rss_mb"] for run in several)) for who, several in runs.items()},
        "load": {who: [round(run["load"], 1) for run in several] for who, several in runs.items()},
        "seeds": {who: [run["seed"] for run in several] for who, several in runs.items()},
    }


def _mean(points: Sequence[Point], name: str) -> float:
    return round(statistics.fmean(point[name] for point in points), 4)
