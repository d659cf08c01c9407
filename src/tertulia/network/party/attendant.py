"""The answering side of a party: each question goes to its run, if the party has approved that run."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write, write_line
from tertulia._locks import is_held
from tertulia.errors import JournalError, PolicyRefusal, TertuliaError
from tertulia.federation.codec import encode
from tertulia.federation.messages import Frame, Question, read_frame
from tertulia.federation.party import failures
from tertulia.federation.party.door import NO_SUCH_RUN
from tertulia.federation.party.host import PartyConfig, PartyHost
from tertulia.metrics.history import Participation, participation_in
from tertulia.network.endings import FINISHED, UNDER_WAY, Ending, ending_or_none, from_bytes, keep_ending
from tertulia.network.party.party_directory import PartyDirectory
from tertulia.operations.health import Monitor

_OPEN = 2  # runs whose documents stay in memory
_KEPT = ("run", "round", "up", "down", "seconds", "answered")  # of `status.json`, when a party attends again
_Look = tuple[tuple[int, int, int] | None, ...]


class Attendant:
    """The object that answers frames of all approved runs, also of runs approved after it was made."""

    def __init__(self, party: PartyDirectory, monitor: Monitor | None = None) -> None:
        self._party, self._policy = party, party.policy_path
        self._most_bytes = party.policy.max_question_bytes
        self._monitor = monitor or Monitor("party", party.file.name)
        self._hosts: dict[str, tuple[_Look, PartyHost]] = {}
        kept = {name: value for name, value in said_by(party).items() if name in _KEPT}  # by the last process
        self._status: dict[str, Any] = {"answered": 0, **kept, "pid": os.getpid()}

    def answer(self, frame: bytes) -> bytes:
        """Answer a frame; malformed ones become a failed answer, and reasons stay in this party's log."""
        try:
            if len(frame) > self._most_bytes:  # not even parsed
                raise PolicyRefusal("max_question_bytes", f"a question of {len(frame)} bytes is too long")
            asked = read_frame(frame)
            host = self._host(asked.run)
        except Exception as error:
            reason = failures.describe(error, details=False)
            write_line(self._party.directory / failures.LOG, "warning", reason)
            return encode(failures.constant_answer(error))
        if isinstance(asked, Question):
            asked = dataclasses.replace(asked, body=b"", lists={})  # copies
        started = time.monotonic()
        answer = host.answer(frame)
        self._monitor.answered(len(frame), len(answer))
        self._count(asked, len(frame), len(answer), time.monotonic() - started)
        return answer

    def _count(self, asked: Frame, received: int, sent: int, seconds: float) -> None:
        """Record the round, bytes and seconds of an answer."""
        known = self._status if self._status.get("run") == asked.run else {}
        facts = {"down": known.get("down", 0) + received, "up": known.get("up", 0) + sent, "seconds": seconds}
        if isinstance(asked, Question):
            facts["round"] = asked.place[0]
            self._is_under_way(asked.run)
        self.note(run=asked.run, answered=self._status["answered"] + 1, **facts)

    def hear(self, data: bytes) -> dict[str, Ending]:
        """Store the server's states of approved runs, and return the new ones. Malformed bytes are only logged."""
        try:
            known = {path.name: path for path in self._party.run_directories()}
            said = {run: one for run, one in from_bytes(data).items() if run in known}
            return {run: one for run, one in said.items() if keep_ending(known[run], one)}
        except (TertuliaError, OSError) as error:
            write_line(self._party.directory / failures.LOG, "warning", failures.describe(error, details=False))
            return {}

    def _is_under_way(self, run: str) -> None:
        """Record that a run was started again, if it is known as ended."""
        directory = self._party.runs / run
        if (known := ending_or_none(directory)) is not None and known.is_over:
            with suppress(JournalError):
                keep_ending(directory, Ending(UNDER_WAY))

    def _host(self, run: str) -> PartyHost:
        """Return the host of a run; open it again after the run was forgotten, or the policy edited."""
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
        """Write `status.json`; an error of writing is only logged."""
        self._status |= facts
        self._monitor.say(**({"state": "connected" if facts["connected"] else "away"} if "connected" in facts else {}))
        try:
            atomic_write(self._party.directory / "status.json", json.dumps(self._status).encode(), durable=False)
        except JournalError:
            write_line(self._party.directory / failures.LOG, "warning", "status.json cannot be written")


def _look(path: Path) -> tuple[int, int, int] | None:
    """Return a file's inode, time and size, to see whether it has changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def status_of_party(party: PartyDirectory) -> dict[str, Any]:
    """Describe a party and its runs from its directory."""
    file, shown = party.file, party.shown
    attending = is_held(party.runs)
    said = said_by(party)
    return {
        "party": file.name,
        "federation": file.federation,
        "server": file.server,
        "key": shown.fingerprint,
        "expires": shown.expires.date().isoformat(),
        **({"kit": file.kit} if file.kit else {}),
        "attending": attending,
        "connected": attending and bool(said.get("connected")),
        "runs": [_status_of_run(directory, said) for directory in party.run_directories()],
    }


def _status_of_run(directory: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a run from its party's directory."""
    config, ending = PartyConfig.load(directory), ending_or_none(directory)
    model = directory / "model" / "model.json"
    state = ending.state if ending is not None else FINISHED if model.exists() else "approved"
    known = said["round"] if said.get("run") == config.run and "round" in said else 0
    found = {
        "run": config.run,
        "method": config.plan["method"] if config.plan else "",
        "state": state if config.plan else "forgotten",
        "round": ending.round if ending is not None and ending.is_over else known,
        "model": "fetched" if model.exists() else "",
    }
    took_part = participation_at(directory, config.id)
    if took_part is None:
        return found
    return {**found, "took_part": str(took_part), "participation": took_part.to_dict()}


def participation_at(directory: Path, party: str) -> Participation | None:
    """Return the rounds that a party took part in, by the model that it has fetched; None if that does not say."""
    try:
        about = json.loads((directory / "model" / "model.json").read_bytes())
        return participation_in(about["provenance"]).get(party)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def said_by(party: PartyDirectory) -> dict[str, Any]:
    """Read the last `status.json` of `tertulia attend`."""
    try:
        said = json.loads((party.directory / "status.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
