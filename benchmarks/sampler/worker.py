"""One training in a process of its own, scored as it goes: `python -m benchmarks.sampler.worker '{"trainer": ...}'`.

A process each keeps one library's memory and threads out of another's figures. Curves of peers are kept (see
`curve_store`). The last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.common import call, peak_mb, reset_peak, say
from benchmarks.sampler import curve_store
from benchmarks.sampler.corpora import folder
from benchmarks.sampler.trainers import Task, train
from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.metrics import completion, npmi, topic_diversity

Curve = list[dict[str, float]]


def measure(task: Task, *, keep: bool) -> dict[str, Any]:
    """Train in another process, unless a curve was kept; return the curve, the memory and the machine's load."""
    if keep and (known := curve_store.find_or_none(task.name)):
        return known
    found = call("benchmarks.sampler.worker", json.dumps(asdict(task)), threads=task.threads)
    if keep:
        curve_store.keep(task.name, found)
    last = found["curve"][-1]
    say(f"{task.name}: {last['cpu_s']:.1f} s, " + ", ".join(f"{last[x]:.3f}" for x in ("ppl", "npmi", "diversity")))
    return found


def score(topic_word: Array, alpha: Array, corpus: Corpus, heldout: Corpus) -> dict[str, float]:
    """Score topics: perplexity with the model's own alpha, NPMI of ten words, diversity of 25."""
    return {
        "ppl": completion(topic_word, np.maximum(alpha, 1e-6), heldout).perplexity,
        "npmi": npmi(topic_word, corpus).mean,
        "diversity": topic_diversity(topic_word),
    }


def main() -> None:
    """Run the training that the command line names."""
    task = Task(**json.loads(sys.argv[1]))
    corpus, heldout = (Corpus.load(folder(task.corpus) / part) for part in ("train", "heldout"))
    cpu = wall = peak = 0.0
    curve: Curve = []
    reset_peak()
    for step in train(task, corpus):
        peak = max(peak, peak_mb())
        cpu, wall = cpu + step.cpu, wall + step.wall
        scores = score(step.topic_word, step.alpha, corpus, heldout)
        mark = {"auto": True} if step.auto else {}
        curve.append({"iterations": step.iterations, "cpu_s": cpu, "wall_s": wall, **scores, **mark})
        reset_peak()  # scoring is not training
    print(json.dumps({"curve": curve, "rss_mb": peak, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
