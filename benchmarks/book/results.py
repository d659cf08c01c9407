"""Results of panels: gathered from cells, stored as committed JSON, judged, and compared with today's quick numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.applications.cells import digest, write_atomically
from benchmarks.book import cells
from benchmarks.book.panels import Found, Panel, Size
from benchmarks.common import SHARED, say

RESULTS = Path(__file__).parents[1] / "results" / "book"
CHECKED = "checked"  # the outcome of the last comparison of quick numbers, beside the results
README = Path(__file__).parents[1] / "README.md"
AGAIN = "again"  # marks the cells of a comparison, which are deleted when it is complete
ROUNDING = 1e-4  # relative, on the machine that measured
LEAST_SPREAD = 0.02  # relative, between machines, where seeds happen to agree


class Missing(Exception):
    """Something that a panel needs is not here; the message says what, and where it comes from."""


class Verdict(NamedTuple):
    """What became of a panel."""

    state: str  # "holds", "differs" or "not_run"
    checks: list[tuple[str, bool, bool]]  # sentence, whether it holds, whether it counts
    stale: str = ""  # why its numbers no longer count; empty: they do


def check_present(panel: Panel, quick: bool = False) -> None:
    """Raise `Missing` unless the panel's corpora and packages are here, for its quick size too if it is asked."""
    folder = Path(os.environ.get("TERTULIA_DATA", SHARED))
    for name in panel.corpora:
        if not (folder / name).is_file():
            raise Missing(f"{name} is not in {folder}; it is {source_of(name)}. Put it there, or set TERTULIA_DATA")
    for name in (*panel.packages, *(panel.quick_packages if quick else ())):
        if find_spec(name) is None:
            raise Missing(f"the package {name} is not installed: benchmarks/README.md says how")


def source_of(corpus: str) -> str:
    """Say where the public gets a corpus: what the table of benchmarks/README.md has on it."""
    for line in README.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"| `{corpus}`"):
            return line.strip("| ").split("|")[-1].strip()
    return "not described in benchmarks/README.md"


def run(panel: Panel) -> dict[str, Any]:
    """Measure what is missing of a panel, in full and quickly, and store both."""
    check_present(panel)
    numbers, measured = gather(panel, panel.full)
    quick: dict[str, Any] = {}
    measured_quickly: dict[str, Any] = {"cpu_seconds": 0.0}
    without = ""
    try:
        check_present(panel, quick=True)
        quick, measured_quickly = gather(panel, panel.quick, code=cells.code_hash(panel.measure))
    except Missing as missing:
        say(f"{panel.name} has no quick numbers: {missing}")
        without = "its quick size needs " + ", ".join(panel.quick_packages)
    result = {
        "panel": panel.name,
        "hash": digest(panel.configuration()),
        "configuration": {"measure": panel.measure, "arguments": panel.full.arguments, "reduced": panel.reduced},
        "seeds": panel.full.seeds,
        **measured,
        "code": cells.code_hash(panel.measure),
        "numbers": numbers,
        "quick": {
            "seeds": panel.quick.seeds,
            **measured_quickly,
            "numbers": quick,
            "without": without,
            "repeatable": True,
        },
    }
    write_atomically(RESULTS / f"{panel.name}.json", result, indent=1)
    if panel.name in (compared := checked()):  # with the result before
        store_checked({name: outcome for name, outcome in compared.items() if name != panel.name})
    return result


def gather(panel: Panel, size: Size, code: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of a panel by line and x, and when, where and in how many CPU seconds they were measured."""
    numbers: dict[str, dict[str, list[float]]] = {}
    seconds, last = 0.0, cells.provenance()
    for arguments, entries in panel.calls(size):
        for seed in size.seeds:
            cell = cells.measure(panel.measure, arguments, seed, code=code)
            seconds += cell["cpu_seconds"]
            last = {key: cell[key] for key in ("commit", "date", "machine")}
            for entry in entries:
                for x, value in entry.take(cell["scores"]).items():
                    numbers.setdefault(entry.line, {}).setdefault(x, []).append(value)
    order = list(dict.fromkeys(entry.line for entry in panel.entries))
    found = {line: numbers[line] for line in order if line in numbers}
    return found, {**last, "cpu_seconds": round(seconds, 1)}


def load_or_none(name: str) -> dict[str, Any] | None:
    """Read a stored result; none if there is none, or if it is no result, which is reported."""
    file = RESULTS / f"{name}.json"
    if not file.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        quick = found["quick"]
        complete = found["panel"] == name and found["hash"] and (quick["numbers"] or quick["without"])
        if complete and _are_numbers(found["numbers"]) and (not quick["numbers"] or _are_numbers(quick["numbers"])):
            return found
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    say(f"{file.name} is half-written or no result of '{name}': it does not count")
    return None


def _are_numbers(lines: Mapping[str, Mapping[str, list[float]]]) -> bool:
    """Whether these are numbers of seeds by line and x."""
    points = [values for line in lines.values() for values in line.values()]
    return bool(points) and all(len(p) > 0 and all(isinstance(x, (int, float)) for x in p) for p in points)


def is_current(panel: Panel, result: Mapping[str, Any]) -> bool:
    """Whether a result has the panel's configuration of today."""
    return bool(result["hash"] == digest(panel.configuration()))


def verdict(panel: Panel, result: Mapping[str, Any] | None, checked: Mapping[str, Any]) -> Verdict:
    """Judge a panel by its checks; its result is stale if its configuration, or its quick numbers, have changed."""
    if result is None:
        return Verdict("not_run", [])
    if not is_current(panel, result):
        return Verdict("not_run", [], "the stored result has another configuration")
    found = Found(result["numbers"])
    try:
        checks = [(check.says, check.holds(found), check.counts) for check in panel.checks]
    except KeyError as error:
        return Verdict("not_run", [], f"the stored result lacks {error}")
    state = "holds" if all(holds for _, holds, counts in checks if counts) else "differs"
    return Verdict(state, checks, checked.get(panel.name, {}).get("stale", ""))


def compare(panel: Panel, result: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Measure the quick numbers again; say which differ from those that stand beside the full result.

    Results that do not say that their noise is repeatable were measured with keys drawn at random: unless an `earlier`
    comparison found the same numbers to the last digits, they are compared as those of another machine are.
    """
    check_present(panel, quick=True)
    if not result["quick"]["numbers"]:
        raise Missing("the stored result has no quick numbers: measure it --again")
    now, measured = gather(panel, panel.quick, code=AGAIN)
    same = measured["machine"] == result["quick"]["machine"]
    found = differences(result["quick"]["numbers"], now, same)
    exact = same and not found
    if found and same and not (result["quick"].get("repeatable") or (earlier or {}).get("exact")):
        found = differences(result["quick"]["numbers"], now, same=False)
    stale = f"{len(found)} quick numbers differ: {'; '.join(found[:3])}" if found else ""
    hint = "" if not found or result["code"] == cells.code_hash(panel.measure) else "sources have changed since"
    return {"stale": stale, "exact": exact, "hint": hint, "same_machine": same, **measured}


def differences(before: Mapping[str, Any], now: Mapping[str, Any], same: bool) -> list[str]:
    """List points that differ: by more than rounding on the same machine, else by more than the seeds do."""
    found = []
    for line, points in before.items():
        for x, values in points.items():
            new = now.get(line, {}).get(x)
            if new is None or len(new) != len(values):
                found.append(f"{line}, {x}: not measured")
                continue
            mean, size = sum(values) / len(values), max(map(abs, values))
            if same:
                differs = any(abs(a - b) > ROUNDING * max(size, 1e-12) for a, b in zip(values, new, strict=True))
            else:
                spread = max(max(values) - min(values), LEAST_SPREAD * size)
                differs = abs(sum(new) / len(new) - mean) > spread
            if differs:
                found.append(f"{line}, {x}: {mean:.5g} then, {sum(new) / len(new):.5g} now")
    return found


def checked() -> dict[str, Any]:
    """Return the outcome of the last comparison of each panel; what cannot be read does not count, and is reported."""
    file = RESULTS / f"{CHECKED}.json"
    if not file.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if all(isinstance(one["stale"], str) for one in found.values()):
            return found
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    say(f"{file.name} is half-written: no comparison counts; `python -m benchmarks.book --quick` writes it")
    return {}


def store_checked(outcome: Mapping[str, Any]) -> None:
    """Store the outcome of comparisons."""
    write_atomically(RESULTS / f"{CHECKED}.json", dict(sorted(outcome.items())), indent=1)
