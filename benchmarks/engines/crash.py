"""`kill -9` of server and parties, at fault points and at random: the number of runs with bit-identical results."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import say
from benchmarks.engines.fixtures import Nursery, kill_a_party, outcome, prepared, texts
from tertulia.runs.directory import Run

POINTS = [
    "party.before_step", "party.before_save", "party.after_save", "party.before_reply",
    "server.before_ask", "server.after_ask", "server.before_commit", "server.after_commit",
]  # fmt: skip
NETWORK = ["party.after_receive", "party.before_send", "server.after_receive"]
_TOY = {"name": "custom", "module": "helpers.toys", "config": {"rounds": 4}}


def crash(engines: list[str], quick: bool) -> dict[str, Any]:
    """Count correct results and trials by engine; every other kill is at a fault point, the rest at random."""
    return {engine: [_trials(engine, n := trials(engine, quick)), n] for engine in engines}


def trials(engine: str, quick: bool) -> int:
    """Return the number of trials; slow starters are tried less often."""
    if engine == "ray":
        return 3 if quick else 20
    return 10 if quick else 50


def _trials(engine: str, number_of_trials: int) -> int:
    moments = random.Random(engine)
    points = POINTS + (NETWORK if engine == "grpc" else [])
    aims = [(point, count) for count in (1, 3, 2, 4) for point in points]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        nursery = Nursery(base)
        try:
            corpora = {p: texts(i, 12 + i) for i, p in enumerate("abc")}
            prepared(base / "template", corpora, _TOY, engine=engine)
            shutil.copytree(base / "template", base / "reference")
            started = time.monotonic()
            nursery.finish(base / "reference")
            seconds = time.monotonic() - started
            expected = outcome(Run.open(base / "reference"))
            right = 0
            for number in range(number_of_trials):
                directory = base / str(number)
                shutil.copytree(base / "template", directory)
                if number % 2:
                    _kill_at_random(nursery, directory, engine, moments, seconds)
                else:
                    point, count = aims[number // 2 % len(aims)]
                    nursery.resume(directory, f"{point}:{count}:{base / f'{number}.killed'}").wait()
                nursery.finish(directory)
                right += outcome(Run.open(directory)) == expected
                shutil.rmtree(directory)
        finally:
            nursery.close()
    say(f"{engine}: {right} of {number_of_trials} right")
    return right


def _kill_at_random(nursery: Any, directory: Path, engine: str, moments: random.Random, seconds: float) -> None:
    child = nursery.resume(directory)
    time.sleep(moments.uniform(0.1, 1.0) * seconds)
    if engine != "local" and moments.random() < 0.5:
        kill_a_party(directory, moments)  # it is started again by the engine
    else:
        child.kill()
    child.wait()
