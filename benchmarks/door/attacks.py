"""Every attack that once worked, run again: `tests/attacks`, by the numbers in the names of its files.

A row is "held" if all tests that name it pass, "open" if one fails or none names it. Row 34, code that a party has
installed itself, is "documented" (docs/threats.md): nothing can hold against it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parents[2] / "tests" / "attacks"
ROWS, DOCUMENTED = range(1, 38), {34}


def rows_of(name: str) -> list[int]:
    """The rows that a file's name tells.

    >>> rows_of("test_row06_24_what_is_printed")
    [6, 24]
    """
    found = re.match(r"test_row((?:\d+_)+)", name)
    return [int(row) for row in found[1].split("_") if row] if found else []


def attacks() -> dict[str, str]:
    """Whether each row holds."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow", f"--junitxml={report}", str(FOLDER)]
        subprocess.run(command, stdout=sys.stderr, check=False)
        passed: dict[int, bool] = {}
        for case in ElementTree.parse(report).iter("testcase"):  # our own file
            holds = not any(case.iter("failure")) and not any(case.iter("error"))
            for row in rows_of(case.get("classname", "").split(".")[-1]):
                passed[row] = passed.get(row, True) and holds
    return {str(row): "documented" if row in DOCUMENTED else "held" if passed.get(row) else "open" for row in ROWS}
