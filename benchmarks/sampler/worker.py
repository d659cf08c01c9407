"""One training in a process of its own, scored as it goes: `python -m benchmarks.sampler.worker '{"trainer": ...}'`.

A process each keeps one library's memory and threads out of another's figures. The last line is JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.common import call, peak_mb, reset_peak
from benchmarks.sampler.trainers import ALPHA, Task, train
from tertulia.corpus import Corpus
from tertulia.metrics import completion


def measure(task: Task) -> dict[str, Any]:
    """Train in another process; return the curve and the memory."""
    return call("benchmarks.sampler.worker", json.dumps(asdict(task)), threads=task.threads)


def main() -> None:
    """Train what the command line says."""
    task = Task(**json.loads(sys.argv[1]))
    corpus, heldout = (Corpus.load(Path(task.directory) / part) for part in ("train", "heldout"))
    cpu = wall = peak = 0.0
    curve = []
    reset_peak()
    for step in train(task, corpus):
        peak = max(peak, peak_mb())
        cpu, wall = cpu + step.cpu, wall + step.wall
        score = completion(step.topic_word, ALPHA / task.topics, heldout)
        curve.append({"sweeps": step.sweeps, "cpu_s": cpu, "wall_s": wall, "perplexity": score.perplexity})
        reset_peak()  # scoring is not training
    print(json.dumps({"curve": curve, "rss_mb": peak}))


if __name__ == "__main__":
    main()
