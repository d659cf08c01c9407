"""Progress of training: a bar on a terminal or in a notebook, else lines of `logging`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Tick = Callable[[int, float], None]  # number of sweeps, epochs or rounds, and the value of the last
_log = logging.getLogger("tertulia")
_EVERY = 10.0  # seconds between log lines
_SHORT = 1.0  # seconds; shorter training shows nothing


@contextmanager
def show_progress(
    wanted: bool | Tick | None, label: str, unit: str, value: str, total: int | None
) -> Iterator[Tick | None]:
    """Yield the function to call after each step.

    If `wanted` is a function, yield it. False: show nothing. True: show a bar. None: show a bar on a terminal or in a
    notebook, else write lines of `logging` (logger `tertulia`, level INFO).
    """
    if wanted is False:
        yield None
    elif callable(wanted):
        yield wanted
    else:
        from rich.console import Console

        console = Console(stderr=True)
        if wanted or console.is_terminal or console.is_jupyter:
            with _bar(console, label, unit, value, total, patience=0.0 if wanted else _SHORT) as tick:
                yield tick
        else:
            yield _lines(label, unit, value)


def _facts(unit: str, n: int, value: str, found: float) -> str:
    """Describe a step; a round without a score has no value.

    >>> _facts("sweep", 3, "perplexity", 812.4), _facts("round", 3, "score", float("nan"))
    ('sweep 3, perplexity 812.4', 'round 3')
    """
    return f"{unit} {n}" if math.isnan(found) else f"{unit} {n}, {value} {found:.4g}"


def _lines(label: str, unit: str, value: str) -> Tick:
    """Return a function that logs a line at most every `_EVERY` seconds."""
    last = time.monotonic()

    def tick(n: int, found: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            _log.info("%s: %s", label, _facts(unit, n, value, found))

    return tick


@contextmanager
def _bar(console: Any, label: str, unit: str, value: str, total: int | None, patience: float) -> Iterator[Tick]:
    """Show a bar once training takes longer than `patience` seconds; remove it at the end."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    facts = TextColumn("{task.fields[facts]}", markup=False)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), facts, TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=patience > 0)
    task, started, shown = bar.add_task(label, total=total, facts=""), time.monotonic(), False

    def tick(n: int, found: float) -> None:
        nonlocal shown
        if not shown and time.monotonic() - started >= patience:
            bar.start()
            shown = True
        bar.update(task, completed=n, facts=_facts(unit, n, value, found))

    try:
        yield tick
    finally:
        if shown:
            bar.stop()


def round_observer(tick: Tick) -> Callable[[str, Mapping[str, Any]], None]:
    """Return an observer of a run that reports its rounds, and logs each warning once."""
    said = set[str]()

    def observe(kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "warning" and facts["text"] not in said:
            said.add(facts["text"])
            _log.warning("%s", facts["text"])
        elif kind == "round":
            score = next((facts[name] for name in ("perplexity", "validation", "loss") if name in facts), float("nan"))
            tick(int(facts["round"]), float(score))

    return observe
