"""How training shows how far it has come: a bar on a terminal or in a notebook, else lines of `logging`."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Tick = Callable[[int, float], None]  # how many sweeps, epochs or rounds there were, and the last one's value
_log = logging.getLogger("tertulia")
_EVERY = 10.0  # seconds between two lines of a log
_SHORT = 1.0  # seconds; what takes no longer shows nothing


@contextmanager
def showing(wanted: bool | Tick | None, label: str, unit: str, value: str, total: int | None) -> Iterator[Tick | None]:
    """What is to be called after each step.

    `wanted` may be a function, which is then called itself; False: nothing is shown; True: a bar in any case; None: a
    bar where there is a terminal or a notebook, else lines of `logging` (logger `tertulia`, level INFO).
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
    """One step in words; a round in which nothing is scored has no value.

    >>> _facts("sweep", 3, "perplexity", 812.4), _facts("round", 3, "score", float("nan"))
    ('sweep 3, perplexity 812.4', 'round 3')
    """
    return f"{unit} {n}" if math.isnan(found) else f"{unit} {n}, {value} {found:.4g}"


def _lines(label: str, unit: str, value: str) -> Tick:
    """A line now and then."""
    last = time.monotonic()

    def tick(n: int, found: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            _log.info("%s: %s", label, _facts(unit, n, value, found))

    return tick


@contextmanager
def _bar(console: Any, label: str, unit: str, value: str, total: int | None, patience: float) -> Iterator[Tick]:
    """A bar that appears once training takes longer than `patience` seconds, and then goes when it ends."""
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


def of_rounds(tick: Tick) -> Callable[[str, Mapping[str, Any]], None]:
    """A run's observer that reports its rounds; warnings go to `logging`, each text once."""
    said = set[str]()

    def observe(kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "warning" and facts["text"] not in said:
            said.add(facts["text"])
            _log.warning("%s", facts["text"])
        elif kind == "round":
            score = next((facts[name] for name in ("perplexity", "validation", "loss") if name in facts), float("nan"))
            tick(int(facts["round"]), float(score))

    return observe
