"""Results of an audit, kept beside the run's directory: each finished part in a file of its own, then all of them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tertulia._disk import atomic_write, private_directory
from tertulia._kinds import check_fields
from tertulia.corpus import TextOptions
from tertulia.errors import FormatError
from tertulia.privacy.policy import Policy
from tertulia.runs.settings import RunSettings

FORMAT = 1
FILE, _PARTS = "audit.json", "parts"
_ROUNDING = 1e-6  # of epsilons, relative
_FRAME = {"directory", "engine", "address", "workers", "operator", "data", "parties"}  # settings that promise nothing


@dataclass(frozen=True)
class Finding:
    """One promise, and what an attack on canaries shows."""

    part: str  # "mechanism", "structure", "masks", "tokens" or "documents"
    party: str  # at which canaries were planted
    what: str
    unit: str
    adjacency: str
    claimed: float  # epsilon
    lower_bound: float  # of epsilon, all bounds of an audit together at its confidence
    could_have_shown: float  # by a perfect attacker, with as many canaries
    delta: float
    canaries: int  # or draws
    note: str = ""

    @property
    def violated(self) -> bool:
        """Whether the claim is false."""
        return self.lower_bound > self.claimed * (1 + _ROUNDING)

    @property
    def verdict(self) -> str:
        """Say what the finding shows."""
        if self.violated:
            return "VIOLATED"
        return "no violation found" if self.could_have_shown > self.claimed else "too few canaries to show one"


@dataclass(frozen=True)
class Part:
    """What one finished part of an audit found, and what it could not test."""

    findings: tuple[Finding, ...] = ()
    untested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """All that an audit found."""

    configuration: str  # hash of what promises
    confidence: float
    findings: tuple[Finding, ...] = ()
    untested: tuple[str, ...] = field(default=())

    @property
    def violated(self) -> bool:
        """Whether any claim is false."""
        return any(one.violated for one in self.findings)


def configuration_of(settings: RunSettings) -> str:
    """Hash all settings that promises depend on: method, texts, terms, and the parties' own choices and policies."""
    own = {name: {**party.choices(), "policy": _policy(party.policy)} for name, party in settings.parties.items()}
    known = settings.model_dump(mode="json", exclude=_FRAME)
    known["text"] = TextOptions.from_dict(settings.text).to_dict()
    text = json.dumps({"settings": known, "parties": own}, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _policy(path: str | None) -> str | None:
    return None if path is None else Policy.load(path).version


def place_of(run: Path) -> Path:
    """Return the directory of the audit of a run's configuration: beside the run's."""
    return run.with_name(f"{run.name}-audit")


class Store:
    """The files of one audit. A part that was finished before an interruption is read, not run again.

    When all parts are finished, only the report stays: the same audit draws its coins and noise again.
    """

    def __init__(self, directory: Path, key: str) -> None:
        self.directory, self._key = directory, key

    def holds(self, name: str) -> bool:
        """Return whether a part was finished before an interruption."""
        return self._path(name).exists()

    def _path(self, name: str) -> Path:
        digest = hashlib.blake2b(f"{self._key}/{name}".encode(), digest_size=12).hexdigest()
        return self.directory / _PARTS / f"{digest}.json"

    def part(self, name: str, work: Callable[[], Part]) -> Part:
        """Return a finished part, or do it and store it."""
        path = self._path(name)
        if path.exists():
            found = _read(path)
            return Part(_findings(found), tuple(found["untested"]))
        done = work()
        private_directory(path.parent)
        atomic_write(path, json.dumps(_plain(done.findings, done.untested)).encode())
        return done

    def finish(self, report: Report) -> None:
        """Write the whole report, and remove the parts."""
        private_directory(self.directory)
        facts = {"configuration": report.configuration, "confidence": report.confidence}
        atomic_write(
            self.directory / FILE, json.dumps({**facts, **_plain(report.findings, report.untested)}, indent=1).encode()
        )
        shutil.rmtree(self.directory / _PARTS, ignore_errors=True)


def _plain(findings: tuple[Finding, ...], untested: tuple[str, ...]) -> dict[str, Any]:
    rows = [{name: _writable(value) for name, value in asdict(one).items()} for one in findings]
    return {"format": FORMAT, "findings": rows, "untested": list(untested)}


def _writable(value: Any) -> Any:
    return str(value) if value == float("inf") else value


def load_or_none(directory: Path) -> Report | None:
    """Read the report in an audit's directory; None if there is none."""
    if not (directory / FILE).exists():
        return None
    found = _read(directory / FILE)
    return Report(found["configuration"], found["confidence"], _findings(found), tuple(found["untested"]))


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise ValueError(f"format {found['format']}")
        _findings(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"{path} is damaged ({error}): remove it, and run `tertulia audit` again") from error
    return found


_NUMBERS = ("claimed", "lower_bound", "could_have_shown")


def _findings(found: dict[str, Any]) -> tuple[Finding, ...]:
    rows = tuple(Finding(**{**row, **{name: float(row[name]) for name in _NUMBERS}}) for row in found["findings"])
    for row in rows:
        check_fields(Finding, vars(row))
    return rows
