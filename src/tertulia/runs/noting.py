"""What whoever drives a run says of it: a line in `server.log` for each event, and how things are in `status.json`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia._logs import Level, write_line
from tertulia.errors import JournalError
from tertulia.runs.seeing import Watch


class Notes:
    """The two files of one federation, and what was said before."""

    def __init__(self, directory: Path, say: Callable[[str], None], watch: Watch) -> None:
        self._directory, self._say, self._watch = directory, say, watch
        self._lock = threading.Lock()  # of the two files
        self._announced: set[str] = set()  # since a party came or went, or a round was done
        before = said(directory).get("run", {})  # a run that goes on has its sums of bytes
        self.facts: dict[str, Any] = {"pid": os.getpid(), "connected": {}, "run": before}

    def begin(self, run: str) -> None:
        """A run is driven now."""
        if self.facts["run"].get("id") != run:
            self.facts["run"] = {"id": run, "round": 0, "seconds": 0.0, "bytes": {}, "absent": []}
        if self.is_news(f"run {run}"):
            self.note("run", run=run)

    def is_news(self, text: str) -> bool:
        """Whether this was not said before, as things are: a run that waits finds the same again and again."""
        if text in self._announced:
            return False
        self._announced.add(text)
        return True

    def forget(self) -> None:
        """Things have changed: whatever is found now is news."""
        self._announced = set()

    def observe(self, kind: str, facts: Mapping[str, Any]) -> None:
        """The facts of a round, or a warning."""
        self._watch.observe(kind, facts)
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
        """A line in `server.log`, and how things are in `status.json`; a full disk stops nobody here."""
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        self._watch.say(state=event)
        with self._lock:
            self.facts |= {"time": now, "event": event}
            write_line(self._directory / "server.log", level, text, event=event, **facts)
            try:
                content = json.dumps(self.facts, default=str).encode()
                atomic_write(self._directory / "status.json", content, durable=False)
            except JournalError as error:
                self._say(f"warning: {error}")


def said(directory: Path) -> dict[str, Any]:
    """What was last said in `status.json`."""
    try:
        facts = json.loads((directory / "status.json").read_bytes())
        return facts if isinstance(facts, dict) and isinstance(facts.get("run"), dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}
