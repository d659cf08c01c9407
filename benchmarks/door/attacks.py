"""Run every recorded attack again: `tests/attacks`, by the numbers in the names of its files.

| status | meaning |
|---|---|
| `held` | all tests that name the row pass |
| `open` | a test that names it fails, or cannot be collected |
| `skipped` | this machine cannot run any of its tests |
| `missing` | no file names it |
| `documented` | there is no defence, and docs/threats.md says so |
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.common import say

FOLDER = Path(__file__).parents[2] / "tests" / "attacks"
LAST = 59  # the last recorded row; files may name later ones
DOCUMENTED = {34}


def rows_of(name: str) -> list[int]:
    """Return the rows in the name of a file, or of a module with its package.

    >>> rows_of("tests.attacks.test_row06_24_what_is_printed")
    [6, 24]
    """
    found = re.search(r"(?:^|[./])test_row((?:\d+_)+)", name)
    return [int(row) for row in found[1].split("_") if row] if found else []


def outcomes(report: Path) -> dict[int, set[str]]:
    """Read how the tests of each row ended (`passed`, `failed`, `skipped`) from pytest's JUnit file."""
    found: dict[int, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # our own file
        failed = case.find("failure") is not None or case.find("error") is not None
        outcome = "failed" if failed else "skipped" if case.find("skipped") is not None else "passed"
        # A module that cannot be collected is a case without a class: its name is the module's.
        for row in rows_of(case.get("classname", "")) or rows_of(case.get("name", "")):
            found.setdefault(row, set()).add(outcome)
    return found


def statuses(ended: dict[int, set[str]], files: Iterable[str]) -> dict[str, str]:
    """Return the status of each row, given the outcomes of its tests and the names of all files."""
    named = {row for name in files for row in rows_of(name)}
    return {str(row): _status(row, ended.get(row, set()), named) for row in sorted({*range(1, LAST + 1), *named})}


def _status(row: int, ended: set[str], named: set[int]) -> str:
    if "failed" in ended:
        return "open"
    if row in DOCUMENTED:
        return "documented"
    if "passed" in ended:
        return "held"
    return "missing" if row not in named else "skipped" if ended else "open"


def attacks(quick: bool = False) -> dict[str, str]:
    """Run the tests, without the slow ones if `quick`, and return the status of each row."""
    files = sorted(FOLDER.glob("test_row*.py"))
    which = "not slow" if quick else "slow or not slow"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", which, f"--junitxml={report}", *map(str, files)]
        subprocess.run(command, stdout=sys.stderr, check=False, cwd=FOLDER.parents[1])
        ended = outcomes(report) if report.exists() else {}
    return statuses(ended, (path.name for path in files))


def summary(found: dict[str, str]) -> dict[str, Any]:
    """Group the rows by status, beside the status of each."""
    rows = {status: [int(row) for row, own in found.items() if own == status] for status in sorted({*found.values()})}
    say(f"attacks: {rows}")
    return {"attacks": found, "attack_rows": rows}
