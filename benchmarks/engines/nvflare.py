"""The same runs inside NVIDIA FLARE: provisioned on loopback, submitted as jobs, killed and submitted again.

FLARE carries runs between organisations, not simulations: each run is compared with its own copy, driven in this
process without FLARE, from the same documents, plans and keys.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import say
from benchmarks.engines.fixtures import texts  # first: it says where the tests' helpers are
from benchmarks.engines.identical import METHODS
from tertulia._toml import toml_value

# isort: split
from helpers.flare import Flare  # type: ignore[import-not-found]

POINTS = [
    "party.before_save", "party.after_save", "party.before_reply", "server.after_ask", "server.before_commit",
    "server.after_commit", "party.before_step", "server.before_ask",
]  # fmt: skip
_SITES, _SERVER = ("north", "south", "east"), "localhost"
_ROUNDS = 40
_PATIENCE = 400.0  # seconds for a run


def identical(quick: bool) -> dict[str, bool]:
    """Tell whether each method has the same result in FLARE as without."""
    found = {}
    with _flare(20 if quick else 60) as flare:
        flare.up()
        for number, (method, settings) in enumerate(METHODS.items()):
            found[method] = _run(flare, settings, number)
            say(f"{method} in FLARE: {found[method]}")
    return found


def crash(trials: int) -> int:
    """Count correct results; every other kill is at a fault point, the rest hit a process at random."""
    right = 0
    method = {**METHODS["consensus"], "rounds": _ROUNDS}
    with _flare(20) as flare:
        moments = random.Random("nvflare")
        for number in range(trials):
            marker = flare.base / f"{number}.killed"
            aim = None if number % 2 else f"{POINTS[number // 2 % len(POINTS)]}:{moments.randint(2, 20)}:{marker}"
            flare.up(fault=aim)
            right += _run(flare, method, 100 + number, None if aim else moments) and (aim is None or marker.exists())
            flare.down()
            say(f"nvflare: {right} of {number + 1} right ({aim or 'at random'})")
    return right


@contextmanager
def _flare(documents: int) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        flare = Flare(Path(folder), {site: texts(i, documents) for i, site in enumerate(_SITES)})
        try:
            yield flare
        finally:
            flare.down()


def _run(flare: Any, method: dict[str, Any], seed: int, moments: random.Random | None = None) -> bool:
    """Tell whether a run has the same result as its copy, also with a kill at a random moment."""
    lines = [f"{key} = {_toml(value)}\n" for key, value in method.items()]
    flare.write("".join(lines), seed)
    run = flare.agree()
    expected, supervisor = flare.alone(run), flare.supervise()
    if moments is not None:
        _kill(flare, run, moments)
    try:
        _, errors = supervisor.communicate(timeout=_PATIENCE)
    finally:
        supervisor.kill()
    if supervisor.returncode:
        say(errors)
        return False
    return bool(flare.outcome(run) == expected)


def _kill(flare: Any, run: str, moments: random.Random) -> None:
    """Kill a job's process, or a whole kit, which is started again, at the server or at a site."""
    flare.wait_for_round(run, moments.randint(1, _ROUNDS // 2))
    time.sleep(moments.uniform(0, 0.2))
    name, job = moments.choice([_SERVER, *_SITES]), moments.random() < 0.5
    flare.kill(name, job=job)
    if not job:
        flare.up(name)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value) if isinstance(value, list) else toml_value(value)
