"""A party answers: each question goes to the run that it is of, if this party has approved that run."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write
from tertulia._locks import is_held
from tertulia._logs import write_line
from tertulia.errors import JournalError, PolicyRefusal
from tertulia.federation.codec import encode
from tertulia.federation.messages import Inquiry, Question, read_frame
from tertulia.federation.party import failures
from tertulia.federation.party.door import NO_SUCH_RUN
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.runs.membership import PartyDirectory
from tertulia.runs.seeing import Watch

_OPEN = 2  # runs whose documents stay in memory
_Look = tuple[tuple[int, int, int] | None, ...]


class Attendant:
    """Answers frames of all runs that were approved, also of those that are while it attends."""

    def __init__(self, party: PartyDirectory, watch: Watch | None = None) -> None:
        self._party, self._policy = party, party.policy_path
        self._most_bytes = party.policy.max_question_bytes
        self._watch = watch or Watch("party", party.file.name)
        self._hosts: dict[str, tuple[_Look, PartyHost]] = {}
        self._status: dict[str, Any] = {"pid": os.getpid(), "answered": 0}

    def answer(self, frame: bytes) -> bytes:
        """Answer a frame, whatever it holds; reasons stay in this party's log."""
        try:
            if len(frame) > self._most_bytes:  # what is too long is not even read
                raise PolicyRefusal("max_question_bytes", f"a question of {len(frame)} bytes is too long")
            asked = read_frame(frame)
            host = self._host(asked.run)
        except Exception as error:
            reason = failures.describe(error, details=False)
            write_line(self._party.directory / failures.LOG, "warning", reason)
            return encode(failures.constant_answer(error))
        started = time.monotonic()
        answer = host.answer(frame)
        self._watch.answered(len(frame), len(answer))
        self._count(asked, len(frame), len(answer), time.monotonic() - started)
        return answer

    def _count(self, asked: Question | Inquiry, received: int, sent: int, seconds: float) -> None:
        """Note what was answered in this run: the round, bytes and seconds."""
        known = self._status if self._status.get("run") == asked.run else {}
        facts = {"down": known.get("down", 0) + received, "up": known.get("up", 0) + sent, "seconds": seconds}
        if isinstance(asked, Question):
            facts["round"] = asked.place[0]
        self.note(run=asked.run, answered=self._status["answered"] + 1, **facts)

    def _host(self, run: str) -> PartyHost:
        """The host of a run; opened anew when the run was forgotten, or the policy edited."""
        directory = self._party.runs / run
        look = (_look(directory / "party.json"), _look(self._policy))
        if not run.isalnum() or look[0] is None:
            raise PolicyRefusal("run", NO_SUCH_RUN)
        known = self._hosts.pop(run, None)
        host = known[1] if known is not None and known[0] == look else PartyHost(directory)
        host.pins = {}  # steps of the package, and of nothing else
        self._hosts[run] = (look, host)
        for oldest in list(self._hosts)[:-_OPEN]:
            del self._hosts[oldest]
        return host

    def note(self, **facts: Any) -> None:
        """Say in `status.json` how things are; that it cannot be written stops nobody."""
        self._status |= facts
        self._watch.say(**({"state": "connected" if facts["connected"] else "away"} if "connected" in facts else {}))
        try:
            atomic_write(self._party.directory / "status.json", json.dumps(self._status).encode(), durable=False)
        except JournalError:
            write_line(self._party.directory / failures.LOG, "warning", "status.json cannot be written")


def _look(path: Path) -> tuple[int, int, int] | None:
    """What a file looks like, to see whether it has changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def status_of_party(party: PartyDirectory) -> dict[str, Any]:
    """What a party's directory says of it."""
    file, shown = party.file, party.shown
    attending = is_held(party.runs)
    try:
        said = json.loads((party.directory / "status.json").read_bytes())
    except (OSError, ValueError):
        said = {}
    configs = [PartyConfig.load(directory) for directory in party.run_directories()]
    return {
        "party": file.name,
        "federation": file.federation,
        "server": file.server,
        "key": shown.fingerprint,
        "expires": shown.expires.date().isoformat(),
        **({"kit": file.kit} if file.kit else {}),
        "attending": attending,
        "connected": attending and bool(said.get("connected")),
        "runs": [
            {
                "run": config.run,
                "method": config.plan["method"] if config.plan else "",
                "state": "approved" if config.plan else "forgotten",
                "round": said["round"] if said.get("run") == config.run and "round" in said else 0,
                "model": "fetched" if (party.runs / config.run / "model").exists() else "",
            }
            for config in configs
        ],
    }
