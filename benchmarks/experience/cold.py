"""CPU seconds of what a new user does first, by a process that has nothing compiled, and by the next one.

`python -m benchmarks.experience.cold fit` does one of these things, and prints what it took.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from statistics import mean
from typing import Any

from benchmarks.common import say
from benchmarks.sampler.first_fit import texts

_RUNS, _QUICK_RUNS = 3, 1
NAMES = {"fit": "first_fit_s", "consensus": "first_consensus_s", "transform": "transform_s"}


def run(quick: bool) -> dict[str, Any]:
    """Each thing from an empty folder of kernels, then once more; means, with the smallest and the largest."""
    found: dict[str, list[float]] = {}
    for _ in range(_QUICK_RUNS if quick else _RUNS):
        for what, name in NAMES.items():
            with tempfile.TemporaryDirectory(prefix="tertulia-") as empty:
                for state in ("cold", "warm"):
                    found.setdefault(f"{state}_{name}", []).append(_in_process(what, empty))
    for name, seconds in found.items():
        say(f"{name}: {seconds}")
    return _summary(found)


def run_import(quick: bool) -> dict[str, Any]:
    """What it takes to import the package, and to reach a first class in it: a whole interpreter's CPU seconds."""
    lines = {"import_s": "import tertulia", "import_lda_s": "import tertulia as tt; tt.LDA()"}
    runs = range(_QUICK_RUNS if quick else _RUNS)
    return _summary({name: [_interpreter(line) for _ in runs] for name, line in lines.items()})


def _interpreter(line: str) -> float:
    before = _cpu()
    subprocess.run([sys.executable, "-c", line], check=True)
    return round(_cpu() - before, 3)


def _summary(found: dict[str, list[float]]) -> dict[str, Any]:
    spread = {f"{name}_spread": [min(seconds), max(seconds)] for name, seconds in found.items()}
    return {name: round(mean(seconds), 2) for name, seconds in found.items()} | spread


def _in_process(what: str, kernels: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": kernels}
    command = [sys.executable, "-m", "benchmarks.experience.cold", what]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["cpu_s"])


def _cpu() -> float:
    """CPU seconds of this process since it began, and of children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _fit() -> float:
    import tertulia as tt

    tt.LDA(topics=20).fit(texts())
    return 0.0


def _transform() -> float:
    """Only what comes after the first fit counts."""
    import tertulia as tt

    model = tt.LDA(topics=20).fit(texts())
    before = _cpu()
    model.transform(texts(1))
    return before


def _consensus() -> float:
    import tertulia as tt

    tt.Consensus(topics=20).fit({"north": texts(0), "south": texts(1), "west": texts(2)})
    return 0.0


DOES: dict[str, Callable[[], float]] = {
    "fit": _fit,
    "transform": _transform,
    "consensus": _consensus,
}


def main(what: str) -> None:
    """Do one thing; what it took counts from the process's start, or from what the thing itself gives back."""
    before = DOES[what]()
    print(json.dumps({"cpu_s": round(_cpu() - before, 3)}))


if __name__ == "__main__":
    main(sys.argv[1])
