"""Logs that machines can read: one JSON object per line, with the time, a level and what happened.

Who writes a line sees to it that it quotes no document: our own errors do not, and of others only the place is given.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from tertulia._disk import private_file

Level = Literal["debug", "info", "warning", "error"]


def write_line(log: Path, level: Level, text: str, **facts: Any) -> None:
    """Add a line to a private log; a log that cannot be written stops nobody."""
    entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, **facts, "text": text}
    try:
        with private_file(log).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(entry, ensure_ascii=False, default=str) + "\n")
    except OSError:
        logging.getLogger("tertulia").debug("%s cannot be written", log.name)


def read_lines(log: Path) -> list[dict[str, Any]]:
    """What a log holds; lines of earlier versions, which were plain text, come as their text."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    return [_entry(line) for line in lines if line.strip()]


def _entry(line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    return entry if isinstance(entry, dict) and "text" in entry else {"level": "info", "text": line}
