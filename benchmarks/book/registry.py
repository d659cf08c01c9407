"""All panels, in the order of the page."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from benchmarks.book.panels import Panel

CHAPTERS = ("ftm", "applications", "fedlda", "pctd", "gfedntm", "worth", "peers")


@cache
def panels() -> tuple[Panel, ...]:
    """Return all panels."""
    found: list[Panel] = []
    for chapter in CHAPTERS:
        found += import_module(f"benchmarks.book.chapters.{chapter}").PANELS
    return tuple(found)


def choose(names: Sequence[str]) -> tuple[Panel, ...]:
    """Return the panels of these names; exit with near names for one that does not exist."""
    known = {panel.name: panel for panel in panels()}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=5, cutoff=0.4)
            hint = f"near ones: {', '.join(near)}" if near else "`--list` prints all"
            raise SystemExit(f"--only {name}: there is no such panel; {hint}")
    return tuple(known[name] for name in names) if names else panels()
