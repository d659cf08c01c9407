"""`kill -9` in every phase of masked sums, aimed and at random: how many runs end with the right totals."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import say
from benchmarks.engines.fixtures import Nursery, kill_a_party, masked_toys, outcome
from tertulia.runs.directory import Run

POINTS = [
    "party.before_step", "party.after_save", "party.after_mask", "party.after_sign", "party.before_reply",
    "server.before_ask", "server.after_ask", "server.before_list", "server.after_list", "server.after_seeds",
    "server.before_commit", "server.after_commit",
]  # fmt: skip


def crash(quick: bool) -> dict[str, Any]:
    """Kill servers and parties on two engines; half of the kills are aimed."""
    trials = 10 if quick else 50
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        nursery = Nursery(base)
        try:
            for number in range(trials):
                right += _trial(nursery, base, number, "grpc" if number % 4 > 1 else "processes")
        finally:
            nursery.close()
    say(f"crashes: {right} of {trials} right")
    return {"crash": [right, trials]}


def _trial(nursery: Any, base: Path, number: int, engine: str) -> bool:
    if not (base / engine / "reference").exists():
        names = masked_toys.names(4)
        script = {"dropouts": {"script": {2: [names[1]]}}}
        masked_toys.begun(base / engine / "template", 4, rounds=3, durable=2, engine=engine, federation=script)
        shutil.copytree(base / engine / "template", base / engine / "reference")
        nursery.finish(base / engine / "reference")
    moments, directory = random.Random(number), base / str(number)
    shutil.copytree(base / engine / "template", directory)
    if number % 2:
        child = nursery.resume(directory)
        time.sleep(moments.uniform(0.3, 5.0))
        if moments.random() < 0.5:
            kill_a_party(directory, moments)
        else:
            child.kill()
        child.wait()
    else:
        aim = f"{POINTS[number // 2 % len(POINTS)]}:{2 + number // 24}:{base / f'{number}.killed'}"
        nursery.resume(directory, aim).wait()
    nursery.finish(directory)
    modules = [masked_toys.__name__]
    same: bool = outcome(Run.open(directory, modules)) == outcome(Run.open(base / engine / "reference", modules))
    shutil.rmtree(directory)
    return same
