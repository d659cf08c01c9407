"""Proposals: a server makes one, and each party reads it with its own software before it approves.

A proposal is JSON without any path. Its id is a hash of all of it, the members' keys included: another proposal is
another run. A party does not trust the plan's hash, but makes the plan itself from the settings and compares.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from tertulia import __version__
from tertulia._kinds import check_fields
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.identity.keys import member_name
from tertulia.federation.plan import Plan
from tertulia.methods.common.descriptions import section_of
from tertulia.methods.common.settings import has_mark
from tertulia.methods.registry import METHODS
from tertulia.runs.plan import plan_of
from tertulia.runs.results import without_paths
from tertulia.runs.settings import RunSettings

MOST_BYTES = 1 << 26  # of a proposal: a word list may be long
_MOST_LETTERS = 100  # of a name, a version, a hash
_LONGEST = 500  # characters of an error that quotes the server
_ID, _HASH = re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9a-f]{64}")
_PRIVATE = ("directory", "engine", "address", "workers", "parties", "data")  # the server's own, or the parties'
_DAMAGED = "the server's proposal cannot be read: both sides need one version of tertulia"


@dataclass(frozen=True)
class Proposal:
    """A run that has not begun."""

    federation: str
    version: str  # of the server's software
    mark: str  # makes it differ from an equal one of another time
    settings: dict[str, Any]
    roster: tuple[str, ...]
    keys: dict[str, str]  # members that have joined, with the fingerprints of their keys
    plan: str  # the hash, as the server has it; empty until all members have joined
    start: dict[str, str] = field(default_factory=dict)  # the `run` that it goes on from, and the `hash` of its model

    @cached_property
    def run(self) -> str:
        """The id of the proposed run."""
        facts = asdict(self)
        if not self.start:
            del facts["start"]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def missing(self) -> list[str]:
        """Members that have not joined yet. The proposal is complete when there are none."""
        return [member for member in self.roster if member not in self.keys]

    @cached_property
    def run_settings(self) -> RunSettings:
        """The settings, checked by this version."""
        _check_no_path(self.settings)
        try:
            return RunSettings(**self.settings)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            versions = f"version {self.version}, here {__version__}"
            raise ConfigError(f"the server's proposal ({versions}): {error}"[:_LONGEST]) from None

    @cached_property
    def own_plan(self) -> Plan:
        """The plan, made by this version; raise `ConfigError` if it is incomplete, or not the server's."""
        if self.missing:
            raise ConfigError(
                f"not all members have joined: {', '.join(self.missing)} can still do so, and only then is the plan "
                "complete, with everybody's key; try again later"
            )
        plan = plan_of(self.run_settings, self.roster, self.keys, self.start.get("hash", ""))
        if not plan.steps:
            raise ConfigError(f"method '{plan.method}' does not say what it asks for, and only that is answered here")
        if plan.hash != self.plan:
            raise ConfigError(
                f"the plan that version {__version__} makes of this proposal is not the one that the server names: "
                f"its version is {self.version}, and all need the same"
            )
        return plan

    def differs(self, other: Proposal) -> bool:
        """Return whether another proposal has other contents."""
        return (self.settings, self.roster, self.keys, self.plan, self.start) != (
            other.settings, other.roster, other.keys, other.plan, other.start,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Encode the proposal for the wire and for the server's file."""
        return json.dumps({"run": self.run, **asdict(self)}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Proposal:
        """Decode a proposal; malformed bytes raise `FormatError`."""
        if len(data) > MOST_BYTES:
            raise FormatError("the server's proposal is too long")
        try:
            facts = json.loads(data, parse_constant=_no_number)
            json.dumps(facts, ensure_ascii=False).encode()  # half a character is no text
            run = facts.pop("run")
            proposal = cls(**{**facts, "roster": tuple(facts["roster"])})
            check_fields(cls, vars(proposal))
            names = [member_name(name) for name in (*proposal.roster, *proposal.keys)]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise FormatError(_DAMAGED) from error
        if max(map(len, (proposal.version, proposal.federation, proposal.mark, proposal.plan))) > _MOST_LETTERS:
            raise FormatError(_DAMAGED)
        if run != proposal.run or not _ID.fullmatch(str(run)) or set(names) != set(proposal.roster):
            raise FormatError(_DAMAGED)
        if proposal.start and not _is_start(proposal.start):
            raise FormatError(_DAMAGED)
        if len(set(proposal.roster)) < len(proposal.roster):
            raise FormatError("the server's proposal names a member twice")
        return proposal


def propose(
    settings: RunSettings,
    roster: tuple[str, ...],
    keys: Mapping[str, str],
    federation: str,
    mark: str,
    start: Mapping[str, str],
) -> Proposal:
    """Propose a run with these settings, without the server's paths."""
    known = {member: keys[member] for member in roster if member in keys}
    public = json.loads(json.dumps(without_paths(settings, leave_out=_PRIVATE)))
    plan = plan_of(settings, roster, known, start.get("hash", "")).hash if len(known) == len(roster) else ""
    return Proposal(federation, __version__, mark, public, roster, known, plan, dict(start))


def _is_start(start: Mapping[str, str]) -> bool:
    """Return whether this names a run, and a model by its hash."""
    return set(start) == {"run", "hash"} and bool(_ID.fullmatch(start["run"]) and _HASH.fullmatch(start["hash"]))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_no_path(settings: Mapping[str, Any]) -> None:
    """Raise `FormatError` if settings of a server would have a party open a file."""
    method = settings.get("method")
    registered = METHODS.get(str(method.get("name"))) if isinstance(method, dict) else None
    if set(settings) & set(_PRIVATE) or registered is None:
        raise FormatError(_DAMAGED)
    for section, kind in ((settings, RunSettings), (method, registered.settings)):
        if _names_a_file(section, kind):
            raise FormatError("the server's proposal names a file, and no file of this party is the server's to name")


def _names_a_file(section: Any, kind: type[BaseModel]) -> bool:
    for name, known in kind.model_fields.items() if isinstance(section, dict) else ():
        value, inner = section.get(name), section_of(known)
        if inner is not None and _names_a_file(value, inner):
            return True
        if (has_mark(known, "path") or has_mark(known, "paths")) and isinstance(value, str):
            return True
    return False
