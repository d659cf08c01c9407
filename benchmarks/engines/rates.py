"""The speed of engines: rounds per second by size of messages, relative to `local`, and seconds to start."""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.common import say
from tertulia.corpus import Corpus
from tertulia.federation.messages import LEDGER_DIGEST, Inquiry
from tertulia.federation.server.handle import Handle
from tertulia.federation.server.inquiries import inquire
from tertulia.runs.directory import Run, drive
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings

SIZES = {"tiny": 80, "1 MB": 1_000_000, "20 MB": 20_000_000}  # bytes, each way
ROUNDS = {"tiny": 60, "1 MB": 30, "20 MB": 4}
PARTIES = {"tiny": 5, "1 MB": 5, "20 MB": 3}
_WARM = 2  # rounds that are not counted


def rates(engines: list[str], quick: bool) -> dict[str, Any]:
    """Measure medians over rounds; engines take turns, so that a busy machine affects all of them."""
    repeats = 1 if quick else 3
    seconds: dict[str, dict[str, list[float]]] = {engine: {size: [] for size in SIZES} for engine in engines}
    starts: dict[str, list[float]] = {engine: [] for engine in engines}
    for size in SIZES:
        for _ in range(repeats):
            for engine in engines:
                started, took = _exchange(engine, size)
                starts[engine].append(started)
                seconds[engine][size] += took
                say(f"{engine}, {size}: {statistics.median(took):.4f} s a round, started in {started:.2f} s")
    medians = {engine: {size: statistics.median(took) for size, took in own.items()} for engine, own in seconds.items()}
    return {
        "rounds_per_s": {e: {size: round(1 / took, 2) for size, took in own.items()} for e, own in medians.items()},
        "vs_local": {
            e: {size: round(took / medians["local"][size], 2) for size, took in own.items()}
            for e, own in medians.items()
            if e != "local"
        },
        "start_s": {engine: round(statistics.median(took), 2) for engine, took in starts.items()},
    }


def _exchange(engine: str, size: str) -> tuple[float, list[float]]:
    """Return the seconds until all parties have answered an inquiry, and the seconds of each round."""
    with tempfile.TemporaryDirectory() as folder:
        run = echo_run(Path(folder) / "run", engine, PARTIES[size], SIZES[size], ROUNDS[size] + _WARM)
        started = time.monotonic()
        with closing(run.transport(engine, PARTIES[size])) as transport:
            inquire(transport, Inquiry(run.id, LEDGER_DIGEST), 60, say)
            ready = time.monotonic() - started
            from benchmarks.engines import echo

            handle = Handle(run.id, transport, run.journal())
            ended = drive(handle, echo.train, run.config["method"]["config"])
    return ready, list(ended.seconds[_WARM:])


def echo_run(directory: Path, engine: str, parties: int, size: int, rounds: int, **config: Any) -> Run:
    """Prepare a run that only exchanges messages."""
    corpora = {f"p{i:02d}": Corpus.from_texts(["rain and sun"]) for i in range(parties)}
    method = {"name": "custom", "module": "benchmarks.engines.echo"}
    method |= {"config": {"bytes": size, "rounds": rounds, **config}}  # type: ignore[dict-item]
    return begin(RunSettings(directory=str(directory), engine=engine, method=method), corpora)
