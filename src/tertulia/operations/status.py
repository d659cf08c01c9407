"""The log of a server: a line in `server.log` for each event, and the present state in `status.json`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia._disk import Level, atomic_write, write_line
from tertulia.errors import JournalError
from tertulia.operations.health import Monitor


class ServerLog:
    """The two files of one federation's server, and the messages that were already reported."""

    def __init__(self, directory: Path, say: Callable[[str], None], monitor: Monitor) -> None:
        self._directory, self._say, self._monitor = directory, say, monitor
        self._lock = threading.Lock()  # of the two files
        self._announced: set[str] = set()  # since a party connected or disconnected, or a round ended
        before = last_status(directory).get("run", {})  # a resumed run keeps its sums of bytes
        self.facts: dict[str, Any] = {"pid": os.getpid(), "connected": {}, "run": before}

    def begin(self, run: str) -> None:
        """Record that a run is driven now."""
        if self.facts["run"].get("id") != run:
            self.facts["run"] = {"id": run, "round": 0, "seconds": 0.0, "bytes": {}, "absent": []}
        if self.is_news(f"run {run}"):
            self.note("run", run=run)

    def is_news(self, text: str) -> bool:
        """Return whether a message is new since the last change: a run that waits meets the same one repeatedly."""
        if text in self._announced:
            return False
        self._announced.add(text)
        return True

    def forget(self) -> None:
        """Forget the messages that were reported, after a change."""
        self._announced = set()

    def observe(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Record the facts of a round, or a warning."""
        self._monitor.observe(kind, facts)
        if kind == "warning":
            if self.is_news(str(facts["text"])):
                self.note("warning", "warning", text=str(facts["text"]))
                self._say(f"warning: {facts['text']}")
            return
        self.forget()
        known = self.facts["run"]
        sent = {party: list(pair) for party, pair in facts["bytes"].items()}
        total = {
            p: [a + b for a, b in zip(known["bytes"].get(p, [0, 0]), pair, strict=True)] for p, pair in sent.items()
        }
        scores = {name: facts[name] for name in ("perplexity", "topics") if name in facts}
        known |= {"round": facts["round"], "seconds": facts["seconds"], **scores}
        known |= {"bytes": known["bytes"] | total, "absent": [p for p, (_, up) in sent.items() if not up]}
        self.note("round", run=known["id"], round=facts["round"], seconds=facts["seconds"], bytes=sent, **scores)

    def note(self, event: str, level: Level = "info", text: str = "", **facts: Any) -> None:
        """Write a line to `server.log`, and the state to `status.json`; an error of writing is only a warning."""
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._monitor.say(state=event)
        with self._lock:
            self.facts |= {"time": now, "event": event}
            write_line(self._directory / "server.log", level, text, event=event, **facts)
            try:
                content = json.dumps(self.facts, default=str).encode()
                atomic_write(self._directory / "status.json", content, durable=False)
            except JournalError as error:
                self._say(f"warning: {error}")


def last_status(directory: Path) -> dict[str, Any]:
    """Read the last `status.json`; empty if there is none."""
    try:
        facts = json.loads((directory / "status.json").read_bytes())
        return facts if isinstance(facts, dict) and isinstance(facts.get("run"), dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}
