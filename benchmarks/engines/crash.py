"""`kill -9` of server and parties, at fault points and at random: the number of runs with bit-identical results.

`python -m benchmarks.engines.crash --engines ray --trials 2` tries only that.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.common import finish, parser, say
from benchmarks.engines.fixtures import Nursery, kill_a_party, outcome, prepared, texts
from tertulia.errors import ConfigError
from tertulia.federation.engines.base import APART, ENGINES
from tertulia.runs.directory import Run

POINTS = [
    "party.before_step", "party.before_save", "party.after_save", "party.before_reply",
    "server.before_ask", "server.after_ask", "server.before_commit", "server.after_commit",
]  # fmt: skip
NETWORK = ["party.after_receive", "party.before_send", "server.after_receive"]
_TOY: dict[str, Any] = {"method": {"name": "custom", "module": "helpers.toys", "config": {"rounds": 4}}}
_CONSENSUS: dict[str, Any] = {  # replies are differences; one party misses two rounds, another joins in the third
    "method": {"name": "consensus", "topics": 20, "rounds": 5, "start_sweeps": 2, "sweeps": 1,
               "vocabulary": {"max_share": 1.0}},
    "federation": {"dropouts": {"script": {2: ["a"], 3: ["a"]}}, "quorum": 0.3},
    "parties": {"c": {"joins": 3}},
}  # fmt: skip


def crash(engines: Sequence[str], quick: bool, number: int | None = None) -> dict[str, list[int]]:
    """Count correct results and trials by engine; engines whose package is missing are left out, with a message."""
    found = {}
    for engine in engines:
        if (missing := missing_or_none(engine)) is not None:
            say(f"{engine}: left out ({missing})")
            continue
        tried = number or trials(engine, quick)
        found[engine] = [_apart(engine)(tried) if engine in APART else _trials(engine, tried), tried]
    return found


def trials(engine: str, quick: bool) -> int:
    """Return the number of trials; in full, slow starters are tried less often."""
    if quick:
        return 10
    return 20 if engine in ("ray", *APART) else 50


def missing_or_none(engine: str) -> str | None:
    """Return the reason why an engine cannot run here."""
    try:
        import_module(ENGINES.get(engine, f"tertulia.federation.engines.{engine}"))
    except (ConfigError, ImportError) as error:
        return str(error)
    return None


def _apart(engine: str) -> Any:
    """Return the trials of an engine between organisations, which has a module of its own."""
    return import_module(f"benchmarks.engines.{engine}").crash


@dataclass(frozen=True)
class _Prepared:
    """A run that has not begun, and how it ends when nothing goes wrong."""

    template: Path
    expected: dict[str, Any]
    seconds: float


def _prepare(nursery: Any, base: Path, engine: str, settings: dict[str, Any]) -> _Prepared:
    corpora = {party: texts(i, 12 + i) for i, party in enumerate("abc")}
    prepared(base / "template", corpora, engine=engine, **settings)
    shutil.copytree(base / "template", base / "reference")
    started = time.monotonic()
    nursery.finish(base / "reference")
    seconds = time.monotonic() - started
    return _Prepared(base / "template", outcome(Run.open(base / "reference")), seconds)


def _trials(engine: str, number_of_trials: int) -> int:
    """Run the trials: two with the toy, two with Consensus, and so on; every other kill is at a fault point."""
    moments, right = random.Random(engine), 0
    points = POINTS + (NETWORK if engine == "grpc" else [])
    aims = [(point, count) for count in (1, 3, 2, 4) for point in points]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        nursery = Nursery(base)
        try:
            runs = [
                _prepare(nursery, base / name, engine, settings)
                for name, settings in (("toy", _TOY), ("consensus", _CONSENSUS))
            ]
            for number in range(number_of_trials):
                run, directory = runs[number // 2 % 2], base / str(number)
                shutil.copytree(run.template, directory)
                if number % 2:
                    _kill_at_random(nursery, directory, engine, moments, run.seconds)
                else:
                    point, count = aims[number // 2 % len(aims)]
                    nursery.resume(directory, f"{point}:{count}:{base / f'{number}.killed'}").wait()
                nursery.finish(directory)
                right += outcome(Run.open(directory)) == run.expected
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


def main() -> None:
    """Run the trials of some engines."""
    command = parser(__doc__ or "")
    command.add_argument("--engines", default=",".join((*ENGINES, *APART)), help="a list; by default all")
    command.add_argument("--trials", type=int, help="for each engine")
    given = command.parse_args()
    finish({"benchmark": "engines.crash", "crash": crash(given.engines.split(","), given.quick, given.trials)})


if __name__ == "__main__":
    main()
