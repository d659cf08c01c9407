"""The book: every figure and table of the five papers, measured, drawn and judged.

Without options, runs what is missing and rewrites pictures and pages. Results are committed JSON in
`benchmarks/results/book`; finished cells are kept in `benchmarks/out/book`, so a run that was killed continues.
`--quick` measures all small sizes again and compares them with those stored beside the full results: a panel whose
small numbers have changed is stale, and the command ends with status 1.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.book import cells, page, pictures, quotes, results
from benchmarks.book.panels import Panel
from benchmarks.book.registry import choose, panels
from benchmarks.common import finish, say

Summary = dict[str, Any]


def read_options() -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.book", description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these panels")
    options.add_argument("--quick", action="store_true", help="small sizes, compared with the stored ones")
    options.add_argument("--list", action="store_true", help="print panels and their states, and run nothing")
    options.add_argument("--pages", action="store_true", help="rewrite pictures and pages, and run nothing")
    options.add_argument("--again", action="store_true", help="measure panels again that have a result")
    options.add_argument("--json", action="store_true", help="end with one line of JSON")
    options.add_argument("--minutes", type=float, help="begin no further panel after as many minutes")
    return options.parse_args()


def summary() -> Summary:
    """Count panels by state, and the pages whose quotes are checked."""
    stored, verdicts = judged()
    every = panels()
    return {
        "book": page.counts(every, verdicts),
        "panels": len(every),
        "numbered": sum(bool(panel.number) for panel in every),
        "pages_checked": len(quotes.pages()) + 1,
        "states": {
            panel.name: {
                "state": verdicts[panel.name].state,
                "partly": bool(panel.reduced) and panel.name in stored,
                "stale": verdicts[panel.name].stale,
                "code_changed": panel.name in stored and stored[panel.name]["code"] != cells.code_hash(panel.measure),
            }
            for panel in every
        },
    }


def judged() -> tuple[dict[str, Any], dict[str, results.Verdict]]:
    """Return the stored results that have today's configuration, and the verdict on every panel."""
    checked = results.checked()
    stored = {panel.name: results.load_or_none(panel.name) for panel in panels()}
    verdicts = {panel.name: results.verdict(panel, stored[panel.name], checked) for panel in panels()}
    found = {p.name: stored[p.name] for p in panels() if verdicts[p.name].state != "not_run"}
    return found, verdicts


def run(chosen: Sequence[Panel], again: bool, minutes: float | None) -> list[str]:
    """Run what is missing; return the panels that could not be run."""
    left_out, end = [], time.monotonic() + 60 * (minutes if minutes is not None else 1e9)
    for panel in chosen:
        stored = results.load_or_none(panel.name)
        if stored and not results.is_current(panel, stored):
            say(f"{panel.name}: the stored result has another configuration; it is measured again")
        elif stored and not again:
            continue
        if time.monotonic() > end:
            say(f"{panel.name}: no time left")
            left_out.append(panel.name)
            continue
        say(f"{panel.name}: {panel.title}")
        try:
            results.run(panel)
        except results.Missing as missing:
            say(f"{panel.name} is left out: {missing}")
            left_out.append(panel.name)
    return left_out


def compare(chosen: Sequence[Panel]) -> dict[str, str]:
    """Measure small sizes again; store the outcome; return the panels that are stale, and why."""
    outcome = results.checked()
    stale = {}
    for panel in chosen:
        stored = results.load_or_none(panel.name)
        if not stored or not results.is_current(panel, stored):
            say(f"{panel.name}: no full result to compare with")
            continue
        try:
            outcome[panel.name] = results.compare(panel, stored, outcome.get(panel.name))
        except results.Missing as missing:
            say(f"{panel.name} is left out: {missing}")
            continue
        if reason := outcome[panel.name]["stale"]:
            stale[panel.name] = reason
            say(f"{panel.name} is STALE: {reason}; {outcome[panel.name]['hint']}")
        results.store_checked(outcome)
    cells.forget(results.AGAIN)
    return stale


def write_pages() -> list[str]:
    """Write pictures, docs/reproduction.md and all quotes; return the names of the files that changed."""
    stored, verdicts = judged()
    for panel in panels():
        if panel.name in stored:
            pictures.draw(panel, stored[panel.name]["numbers"])
    changed = [file for file in (quotes.GENERATED,) if page.write(file, page.page(panels(), stored, verdicts))]
    for file in quotes.pages():
        try:
            changed += [file] if page.write(file, quotes.fill(file.read_text(encoding="utf-8"))) else []
        except quotes.QuoteError as error:
            say(f"{file.name} keeps its numbers: {error}")
    return [file.name for file in changed]


def show(found: Summary) -> None:
    """Print panels and their states."""
    for panel in panels():
        state = found["states"][panel.name]
        notes = [note for note in ("partly", "stale") if state[note]] + ["code has changed"] * state["code_changed"]
        print(f"{panel.name:24} {state['state']:8} {', '.join(notes):28} {panel.minutes:5g} min  {panel.title}")
    print(json.dumps(found["book"]))


def main() -> None:
    """Run the command."""
    given = read_options()
    chosen = choose(given.only)
    stale: dict[str, str] = {}
    extra: Summary = {}
    if given.quick:
        started = time.process_time()
        stale = compare(chosen)
        extra = {"stale": stale, "cpu_minutes": round((time.process_time() - started) / 60, 1)}
    elif not given.list and not given.pages:
        extra = {"left_out": run(chosen, given.again, given.minutes)}
    if not given.list:
        extra["written"] = write_pages()
    found = summary()
    if not given.json:
        show(found)
    else:
        finish({"benchmark": "book", **found, **extra})
    raise SystemExit(1 if stale else 0)


if __name__ == "__main__":
    main()
