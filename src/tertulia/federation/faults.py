"""Fault points: places where a crash test may kill this process, named so that a kill can be aimed.

`TERTULIA_FAULT=party.after_save:3:/some/marker` kills the process (SIGKILL) the third time it passes that point,
once: the marker file remembers it, so that the restarted process lives. Without the variable a point costs nothing.
"""

import os
import signal
from pathlib import Path

_VARIABLE = "TERTULIA_FAULT"
_passed: dict[str, int] = {}


def point(name: str) -> None:
    """Pass a fault point."""
    aim = os.environ.get(_VARIABLE)
    if aim is None or not aim.startswith(name + ":"):
        return
    _, count, marker = aim.split(":", 2)
    _passed[name] = _passed.get(name, 0) + 1
    if _passed[name] >= int(count) and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
