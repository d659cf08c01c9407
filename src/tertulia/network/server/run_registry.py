"""Proposal, approvals and states of runs at a server, stored as files.

`tertulia serve` and the operator's other commands communicate by these files alone.
"""

from __future__ import annotations

import json
import math
import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertulia._disk import atomic_write, private_directory
from tertulia._locks import brief_lock
from tertulia._toml import with_value
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.engines.grpc import wire
from tertulia.models import Topics, storage
from tertulia.network.endings import ABANDONED, FINISHED, STOPPED, UNDER_WAY, Endings
from tertulia.network.proposals import Proposal, propose
from tertulia.network.server.federation_directory import FILE, FederationDirectory
from tertulia.runs.directory import Run
from tertulia.runs.settings import RunSettings
from tertulia.runs.start_model import copy_start, go_on

LAST = "last"  # as `start_from`: the run that was finished last
NOT_THE_PROPOSAL = "this is not what is proposed now: run `tertulia approve` again"
NOTHING = "nothing is proposed yet: the operator's file is not ready"
_MOST_BYTES = 4096  # of an approval, and of the envelope around the files of a model


class RunState(NamedTuple):
    """The state of a run, and the reason if it has stopped."""

    state: str
    text: str = ""


class RunRegistry:
    """The proposal, the approvals and the runs of one federation."""

    def __init__(self, federation: FederationDirectory) -> None:
        self.federation = federation
        self._proposal = federation.directory / "proposal.json"
        self._approvals = federation.directory / "approvals.json"
        self._endings = Endings(lambda: federation.runs, lambda run: self.state(run).state)

    # --- requests of parties --------------------------------------------------------------------------------------

    def proposal(self) -> bytes:
        """Encode the proposal that parties see: while a run is under way, that run."""
        return self._shown().to_bytes()

    def approve(self, member: str, approval: bytes) -> bytes:
        """Record a member's approval; raise `ConfigError`, which the member sees, if it is for another proposal."""
        proposal = self._shown()
        try:
            given = json.loads(approval[:_MOST_BYTES])
            fits = (given["run"], given["plan"]) == (proposal.run, proposal.plan) and not proposal.missing
        except (ValueError, TypeError, LookupError, RecursionError):
            fits = False
        if not fits or member not in proposal.roster:
            raise ConfigError(NOT_THE_PROPOSAL)
        with brief_lock(self.federation.runs):
            facts = self._read(self._approvals) | {member: {"run": proposal.run, "plan": proposal.plan}}
            atomic_write(self._approvals, json.dumps(facts, indent=1).encode())
        return json.dumps({"approved": self.approved(proposal), "members": list(proposal.roster)}).encode()

    def leave(self, member: str) -> None:
        """Record that a member has left: later runs do not name it, and a run under way goes on without it."""
        if self.federation.members.state(member) == "joined":
            self.federation.members.leave(member)

    def model(self, member: str, run: str) -> bytes:
        """Encode a run's model for a member on its roster; raise `ConfigError`, which the member sees, for others."""
        if not run.isalnum():  # so it is no path
            raise ConfigError(wire.NOT_YOURS)
        directory, found = self.federation.runs / run, self.state(run).state
        known = None if found else self._known()
        roster = Run.open(directory).parties if found else known.roster if known and known.run == run else ()
        if member not in roster and not self._starts_from(member, run):
            raise ConfigError(wire.NOT_YOURS)
        if found != FINISHED:
            raise ConfigError(wire.GIVEN_UP if found == ABANDONED else wire.NOT_FINISHED)
        return model_bytes(directory)

    def news(self, member: str) -> bytes:
        """Encode the states of the runs that have this member on their rosters."""
        return self._endings.of(member)

    def _starts_from(self, member: str, run: str) -> bool:
        """Return whether this member is asked to approve a run that starts from that run's model."""
        proposal = self._shown()
        return member in proposal.roster and proposal.start.get("run") == run

    # --- the proposal ---------------------------------------------------------------------------------------------

    def _shown(self) -> Proposal:
        """Return the proposal that members see; while the operator's file is broken, say being edited, the last one."""
        try:
            return self.current()
        except ConfigError:
            if (known := self._known()) is None:
                raise ConfigError(NOTHING) from None
            return known

    def current(self) -> Proposal:
        """Return the proposal. A change of the file or the roster makes a new one, unless a run is under way."""
        with brief_lock(self.federation.runs):
            return self._current()

    def _current(self) -> Proposal:
        known = self._known()
        if known is not None and self.state(known.run).state == UNDER_WAY:
            return known
        fresh = self._fresh()
        if known is not None and not known.differs(fresh):
            return known
        atomic_write(self._proposal, fresh.to_bytes())
        return fresh

    def edited(self) -> bool:
        """Return whether the file or the roster has changed since the run under way was agreed."""
        known = self._known()
        return known is not None and known.differs(self._fresh())

    def _known(self) -> Proposal | None:
        return Proposal.from_bytes(self._proposal.read_bytes()) if self._proposal.exists() else None

    def _fresh(self) -> Proposal:
        federation, keys = self.federation, self.federation.members.keys()
        settings, start = self._settings("run")
        return propose(settings, federation.roster, keys, federation.file.name, secrets.token_hex(8), start)

    def _settings(self, directory: Path | str) -> tuple[RunSettings, dict[str, str]]:
        """Return the settings of the next run and, if it continues a run, that run and the hash of its model."""
        settings = self.federation.file.run_settings(directory)
        if settings.start_from == LAST:
            settings = settings.replace(start_from=self._last_finished())
        if settings.start_from is None:
            return settings, {}
        if (found := self.state(settings.start_from).state if settings.start_from.isalnum() else "") != FINISHED:
            why = f"is {found}" if found else "is no run of this federation"
            raise ConfigError(f"start_from: run {settings.start_from[:100]} {why}, and one goes on from a finished run")
        model = self.model_of(settings.start_from)
        start = {"run": settings.start_from, "hash": storage.fingerprint(model)}
        return go_on(settings, Topics.load(model)), start

    def model_of(self, run: str) -> Path:
        """Return the path of a finished run's model."""
        return self.federation.runs / run / "model"

    def go_on_from(self, last: str) -> str | None:
        """Let the next run start from the model of an earlier one, `last` or an id; None: that is proposed already.

        The file gets the word `last` itself: each proposal then starts from the run that finished last at that time.
        """
        run = self._last_finished() if last == LAST else last
        path, before = self.federation.directory / FILE, (self.federation.directory / FILE).read_text(encoding="utf-8")
        known = self._known()
        proposed = known is not None and known.start.get("run") == run
        if self.federation.file.start_from == last and proposed:
            return None
        if known is not None and self.state(known.run).state == UNDER_WAY:
            raise ConfigError(f"run {known.run} is under way: go on from a run when it is finished")
        atomic_write(path, with_value(before, "start_from", last).encode())
        try:
            self._fresh()
        except ConfigError:
            atomic_write(path, before.encode())
            raise
        return None if proposed else run

    def give_reason(self, text: str) -> bool:
        """Write the reason of the next run to the operator's file; return whether that makes another proposal."""
        path, before = self.federation.directory / FILE, (self.federation.directory / FILE).read_text(encoding="utf-8")
        if self.federation.file.reason == text:
            return False
        known = self._known()
        if known is not None and self.state(known.run).state == UNDER_WAY:
            raise ConfigError(
                f"run {known.run} is under way, as its members have approved it: give a reason to the next"
            )
        atomic_write(path, with_value(before, "reason", text).encode())
        try:
            self._fresh()
        except ConfigError:
            atomic_write(path, before.encode())
            raise
        return True

    def _last_finished(self) -> str:
        """Return the id of the newest finished run."""
        found = [
            (path.stat().st_mtime_ns, path.parent.name)
            for path in self.federation.runs.glob("*/run.json")
            if self.state(path.parent.name).state == FINISHED
        ]
        if not found:
            raise ConfigError("no run of this federation is finished: there is nothing to go on from yet")
        return max(found)[1]

    def approved(self, proposal: Proposal) -> list[str]:
        """List the members that have approved this very proposal."""
        facts = self._read(self._approvals)
        wanted = {"run": proposal.run, "plan": proposal.plan}
        return [member for member in proposal.roster if facts.get(member) == wanted]

    def approved_run(self, run: Run) -> list[str]:
        """List the members that have approved a run that was started; its id is a hash of the proposal."""
        facts = self._read(self._approvals)
        return [member for member in run.parties if facts.get(member, {}).get("run") == run.id]

    # --- runs -----------------------------------------------------------------------------------------------------

    def start(self) -> Run:
        """Make a run of the proposal, if enough members have approved it; `serve` drives it."""
        with brief_lock(self.federation.runs):  # the proposal must not change meanwhile
            return self._start(self._current())

    def _start(self, proposal: Proposal) -> Run:
        directory, found = self.federation.runs / proposal.run, self.state(proposal.run)
        if found.state == UNDER_WAY:
            edited = "; what was edited since counts for the next one" if self.edited() else ""
            raise ConfigError(f"run {proposal.run} is under way, as its members have approved it{edited}")
        if found.state == FINISHED:
            raise ConfigError(
                f"run {proposal.run} is finished, its model is {directory / 'model'}: for another run edit "
                f"{self.federation.directory / 'federation.toml'}, its `seed` say, and have the members approve"
            )
        _ = proposal.own_plan  # raises an error if it is incomplete
        if self.federation.file.engine == "grpc":  # else approvals stay at the parties, which refuse runs without one
            self._check_approvals(proposal)
        if found.state == STOPPED:
            (directory / "state.json").unlink()
            return Run.open(directory)
        settings, start = self._settings(private_directory(directory))
        if start:
            copy_start(self.model_of(start["run"]), directory)
        run = Run(directory, proposal.run, proposal.roster, settings.model_dump(mode="json"), keys=proposal.keys)
        run.save()
        return run

    def _check_approvals(self, proposal: Proposal) -> None:
        approved = self.approved(proposal)
        needed = max(1, math.ceil(self.federation.file.terms.quorum * len(proposal.roster)))
        if len(approved) < needed:
            missing = ", ".join(member for member in proposal.roster if member not in approved)
            raise ConfigError(
                f"{len(approved)} of {len(proposal.roster)} members have approved, and {needed} must: there is no word "
                f"from {missing}, where `tertulia approve` gives it"
            )

    def abandon(self) -> str:
        """Give up the run that is under way or stopped, so that something else can be proposed."""
        known = self._known()
        if known is None or self.state(known.run).state not in (UNDER_WAY, STOPPED):
            raise ConfigError("there is no unfinished run to abandon")
        self.end(known.run, ABANDONED, "by the operator")
        return known.run

    def state(self, run: str) -> RunState:
        """Return the state of a run; it is empty if the run has not been started."""
        directory = self.federation.runs / run
        if not (directory / "run.json").exists():
            return RunState("")
        facts = self._read(directory / "state.json")
        return RunState(str(facts.get("state", UNDER_WAY)), str(facts.get("text", "")))

    def end(self, run: str, state: str, text: str = "") -> None:
        """Record that a run has finished, or why it stopped."""
        facts = json.dumps({"state": state, "text": text}).encode()
        atomic_write(self.federation.runs / run / "state.json", facts)

    def newest(self) -> str | None:
        """Return the run that was started last, if any."""
        found = [(path.stat().st_mtime_ns, path.parent.name) for path in self.federation.runs.glob("*/run.json")]
        return max(found)[1] if found else None

    def under_way(self) -> Run | None:
        """Open the run that is under way, if there is one."""
        known = self._known()
        if known is None or self.state(known.run).state != UNDER_WAY:
            return None
        return Run.open(self.federation.runs / known.run)

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        try:
            facts = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise FormatError(f"{path} is damaged ({error}): restore it from a backup") from error
        if not isinstance(facts, dict):
            raise FormatError(f"{path} is damaged: restore it from a backup")
        return facts


def model_bytes(directory: Path) -> bytes:
    """Encode the files of a run's model for the wire."""
    paths = [directory / "model" / name for name in storage.FILES]
    if sum(path.stat().st_size for path in paths) > MOST_BYTES - _MOST_BYTES:
        raise ConfigError(wire.TOO_LONG)
    return encode({path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in paths})
