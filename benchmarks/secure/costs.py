"""The cost of masks: seconds, CPU seconds and bytes of a round, beside those of a plain one, over TLS."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.common import peak_mb, reset_peak, say
from benchmarks.secure import load
from benchmarks.secure.slow_links import limited
from tertulia.corpus import Corpus
from tertulia.federation.engines.base import Transport
from tertulia.federation.messages import LEDGER_DIGEST, Inquiry
from tertulia.federation.server.handle import Handle
from tertulia.federation.server.inquiries import inquire
from tertulia.runs.directory import Run, drive
from tertulia.runs.driver import settings_of, terms_of
from tertulia.runs.one_machine import begin
from tertulia.runs.plan import plan_of
from tertulia.runs.settings import RunSettings

MEGABYTE = 1_000_000
_WARM = 1  # rounds that are not counted


def costs(quick: bool) -> dict[str, Any]:
    """Measure rounds of 20 MB with 5 parties and of 4 MB with 50; plain and masked take turns."""
    cases = {5: 20, 50: 4} if not quick else {5: 20, 20: 4}
    found: dict[str, Any] = {"ratio": {}, "cpu_s": {}, "seconds": {}, "bytes": {}}
    for parties, size in cases.items():
        times = _in_turns(parties, size * MEGABYTE, rounds=4 if quick else 6, repeats=1 if quick else 3)
        plain, secure = (statistics.median([s for one in times[kind] for s in one.seconds]) for kind in (False, True))
        found["ratio"][parties] = round(secure / plain, 2)
        found["seconds"][parties] = {"plain": round(plain, 3), "secure": round(secure, 3)}
        cpu = [statistics.median(one.cpu for one in times[kind]) for kind in (False, True)]
        found["cpu_s"][parties] = {"plain": round(cpu[0], 3), "secure": round(cpu[1], 3)}
        found["bytes"][parties] = {name: times[kind][0].bytes for name, kind in (("plain", False), ("secure", True))}
        say(f"{parties} parties, {size} MB: {found['ratio'][parties]} times plain, {found['seconds'][parties]}")
    tiny = _in_turns(5, 400, rounds=30, repeats=1 if quick else 3)
    small = [statistics.median([s for one in tiny[kind] for s in one.seconds]) for kind in (False, True)]
    found["ratio_small"] = round(small[1] / small[0], 2)
    found["seconds"]["small"] = {"plain": round(small[0], 4), "secure": round(small[1], 4)}
    return found


def parties_50(quick: bool) -> dict[str, Any]:
    """Let fifty processes exchange 4 MB each under masks: seconds per round, and the server's memory."""
    reset_peak()
    one = measure(20 if quick else 50, 4 * MEGABYTE, rounds=3, secure=True)
    return {"parties_50": {"seconds_per_round": round(statistics.median(one.seconds), 2), "rss_mb": round(peak_mb())}}


def slow_link(quick: bool) -> dict[str, Any]:
    """Measure a round of 4 MB with 3 parties through links of 50 Mbit/s."""
    size = 2 * MEGABYTE if quick else 4 * MEGABYTE
    found = {}
    for name, secure in (("plain", False), ("secure", True)):
        one = measure(3, size, rounds=2, secure=secure, megabits=50.0)
        found[name] = round(statistics.median(one.seconds), 2)
    say(f"over 50 Mbit/s: {found}")
    return {"slow_link": found}


class Measured:
    """The cost of one run."""

    def __init__(self, seconds: list[float], cpu: float, bytes_up: int) -> None:
        self.seconds, self.cpu, self.bytes = seconds, cpu, bytes_up


def _in_turns(parties: int, size: int, rounds: int, repeats: int) -> dict[bool, list[Measured]]:
    found: dict[bool, list[Measured]] = {False: [], True: []}
    for _ in range(repeats):
        for secure in (False, True):
            found[secure].append(measure(parties, size, rounds, secure=secure))
    return found


def measure(parties: int, size: int, rounds: int, *, secure: bool, megabits: float | None = None) -> Measured:
    """Run some rounds over TLS, each party in its own process."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        run = load_run(Path(folder) / "run", parties, size, rounds + _WARM, secure=secure)
        if megabits is not None:
            stack.enter_context(limited(megabits))
        transport = stack.enter_context(closing(run.transport("grpc", parties)))
        inquire(transport, Inquiry(run.id, LEDGER_DIGEST), 300, say)  # all have started
        with _cpu_of_children() as cpu:
            ended, history = drive_load(run, transport)
    per_round = cpu[0] / (rounds + _WARM)
    up = sum(up for _, up in history[-1]["bytes"].values())
    return Measured(list(ended.seconds[_WARM:]), per_round, up)


def load_run(directory: Path, parties: int, size: int, rounds: int, *, secure: bool, **federation: Any) -> Run:
    """Prepare a run that only sums numbers."""
    corpora = {f"p{i:02d}": Corpus.from_texts(["rain and sun"]) for i in range(parties)}
    method: dict[str, Any] = {"name": "custom", "module": load.__name__}
    method["config"] = {"bytes": size, "rounds": rounds}
    given = {"secure": secure, **federation}
    return begin(RunSettings(directory=str(directory), engine="grpc", method=method, federation=given), corpora)


def drive_load(run: Run, transport: Transport) -> tuple[load.Rounds, Any]:
    """Drive such a run; return its end and its history."""
    settings = settings_of(run)
    plan = plan_of(settings, run.parties, run.keys)
    handle = Handle(run.id, transport, run.journal(), terms_of(settings), plan=plan)
    handle.prepare()
    ended = drive(handle, load.train, run.config["method"]["config"])
    return ended, handle.history


@contextmanager
def _cpu_of_children() -> Iterator[list[float]]:
    """Measure the CPU seconds of this process and of its children, while they live."""
    found = [0.0]
    before = _cpu()
    yield found
    found[0] = _cpu() - before


def _cpu() -> float:
    """Return the CPU seconds of this process and of its children, from /proc."""
    total, own = 0.0, str(os.getpid())
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            fields = path.read_text().rpartition(")")[2].split()
            if path.parent.name == own or fields[1] == own:
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def repair(quick: bool) -> dict[str, Any]:
    """Measure the seconds that a dropout adds to a round of 20 MB with 5 parties: its masks are made again."""
    took = []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as folder:
            script = {"dropouts": {"script": {3: ["p04"], 4: ["p04"]}}, "quorum": 0.5}
            run = load_run(Path(folder) / "run", 5, 20 * MEGABYTE, 6, secure=True, **script)
            with closing(run.transport("grpc", 5)) as transport:
                started = time.monotonic()
                ended, _ = drive_load(run, transport)
                say(f"with a dropout: {time.monotonic() - started:.1f} s in all")
            there, away = ended.seconds[1:3] + ended.seconds[5:], ended.seconds[3:5]
            took.append(statistics.median(away) - statistics.median(there))
    return {"repair_s": round(statistics.median(took), 3)}
