"""The Pythons that the package runs on: what is tried in an environment of each one that is installed here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import say

ROOT = Path(__file__).parents[2]
MINORS = (11, 12, 13, 14)
TESTS = ("tests/unit/corpus", "tests/unit/privacy", "tests/unit/federation", "tests/unit/models", "tests/unit/runs")
QUICK_TESTS = ("tests/unit/corpus",)
EXTRAS = "network,sql"
TOOLS = ("pytest>=8.2", "pytest-timeout>=2.3", "hypothesis>=6.100", "adbc-driver-sqlite", "jieba", "pandas>=2.2")
TRIAL = """
import tertulia as tt
texts = ["rain fell on the river", "the bank lent money", "rivers rise with rain", "money and loans"] * 20
model = tt.LDA(topics=2, sweeps=20).fit(texts)
shared = tt.Consensus(topics=2, rounds=2).fit({"north": texts, "south": texts})
assert model.n_topics == shared.n_topics == 2
"""


def interpreters() -> dict[str, str]:
    """Find the interpreters: on the path, and those that TERTULIA_PYTHONS lists."""
    found: dict[str, str] = {}
    listed = [path for path in os.environ.get("TERTULIA_PYTHONS", "").split(os.pathsep) if path]
    for command in [*listed, *(f"python3.{minor}" for minor in MINORS)]:
        if shutil.which(command) is None:
            continue
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and (version := re.search(r"3\.(?:1[1-9])\.\d+\S*", done.stdout)):
            found.setdefault(version[0], command)
    return found


def trial(python: str, tests: tuple[str, ...], place: Path) -> dict[str, Any]:
    """Install the package with its pinned packages, train, and run tests; return what passed."""
    subprocess.run([python, "-m", "venv", place], check=True)
    inside = str(place / "bin" / "python")
    pip = [inside, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, f"{ROOT}[{EXTRAS}]", *TOOLS], check=True, stdout=sys.stderr)
    subprocess.run([inside, "-P", "-c", TRIAL], check=True, cwd=place)
    done = subprocess.run([inside, "-m", "pytest", "-q", *tests], cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1:]
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped|errors?)", " ".join(last))}
    return {"fit": True, "federation": True, "tests": counts}


def run(quick: bool) -> dict[str, Any]:
    """Try the package on every Python that is here."""
    result = {}
    for version, python in interpreters().items():
        say(f"Python {version}")
        with tempfile.TemporaryDirectory(prefix="tertulia-python-") as place:
            result[version] = trial(python, QUICK_TESTS if quick else TESTS, Path(place))
    return {"pythons": result}
