"""From a clone of the last commit to the first topics, in an environment that has nothing else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import say

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ("make demo",)  # what README has a newcomer type in a clone
_TOPICS = "topics over"  # what the demo prints of them


def run(quick: bool) -> dict[str, Any]:
    """Clone, install, and type what a newcomer types; `quick` changes nothing here."""
    with tempfile.TemporaryDirectory(prefix="tertulia-") as folder:
        clone = Path(folder) / "tertulia"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        started = time.monotonic()
        _type("make .venv/.core", clone)
        installed = time.monotonic() - started
        size = _megabytes(clone / ".venv")
        say(f"installed in {installed:.0f} s: {size:.0f} MB")
        typed = _until_topics(clone)
        before = _children()
        _type(COMMANDS[-1], clone)
        return {
            "install_s": round(installed, 1),
            "install_mb": round(size),
            "commands_to_first_topic": typed,
            "demo_warm_s": round(_children() - before, 1),
        }


def _until_topics(clone: Path) -> int | None:
    """How many commands it takes until topics are shown; None if they never are."""
    for typed, command in enumerate(COMMANDS, start=1):
        if _TOPICS in _type(command, clone):
            return typed
    return None


def _type(command: str, clone: Path) -> str:
    """What a command prints, typed in the clone, by somebody who has no other environment."""
    own = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    words = [*command.split(), f"PYTHON={sys.base_prefix}/bin/python3"]
    say(f"$ {' '.join(words)}")
    return subprocess.run(words, cwd=clone, env=own, stdout=subprocess.PIPE, text=True, check=True).stdout


def _megabytes(folder: Path) -> float:
    """How large a folder's files are, in MB of 2^20 bytes; on disk, blocks add a few hundredths."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 2**20


def _children() -> float:
    """CPU seconds of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
