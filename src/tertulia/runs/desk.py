"""What the server of a federation decides on paper: the proposal, who has approved it, and which run was started.

Everything is in files, so that `serve` and the operator's other commands need no second way to speak to each other.
"""

from __future__ import annotations

import json
import math
import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tertulia._disk import atomic_write, private_directory
from tertulia._locks import taking_turns
from tertulia._toml import with_value
from tertulia.errors import ConfigError, FormatError
from tertulia.federation.codec import encode
from tertulia.federation.engines.base import MOST_BYTES
from tertulia.federation.engines.grpc import wire
from tertulia.models import Topics, storage
from tertulia.runs.config import RunSettings
from tertulia.runs.continuing import copy_start, go_on
from tertulia.runs.federations import FILE, Federation
from tertulia.runs.layout import Run
from tertulia.runs.proposals import Proposal, propose

NOT_THE_PROPOSAL = "this is not what is proposed now: run `tertulia approve` again"
NOTHING = "nothing is proposed yet: the operator's file is not ready"
UNDER_WAY, STOPPED, FINISHED, ABANDONED = "under way", "stopped", "finished", "abandoned"
_MOST_BYTES = 4096  # of an approval, and of what is around the files of a model


class RunState(NamedTuple):
    """How far a run has come, and why it stopped, if it did."""

    state: str
    text: str = ""


class Desk:
    """The papers of one federation."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self._proposal = federation.directory / "proposal.json"
        self._approvals = federation.directory / "approvals.json"

    # --- what parties ask for -------------------------------------------------------------------------------------

    def proposal(self) -> bytes:
        """What parties are asked to approve; while a run is under way, that run."""
        return self._shown().to_bytes()

    def approve(self, member: str, approval: bytes) -> bytes:
        """Note that a member approves what is proposed; an error, which the member sees, says if it is not that."""
        proposal = self._shown()
        try:
            given = json.loads(approval[:_MOST_BYTES])
            fits = (given["run"], given["plan"]) == (proposal.run, proposal.plan) and not proposal.missing
        except (ValueError, TypeError, LookupError, RecursionError):
            fits = False
        if not fits or member not in proposal.roster:
            raise ConfigError(NOT_THE_PROPOSAL)
        with taking_turns(self.federation.runs):
            facts = self._read(self._approvals) | {member: {"run": proposal.run, "plan": proposal.plan}}
            atomic_write(self._approvals, json.dumps(facts, indent=1).encode())
        return json.dumps({"approved": self.approved(proposal), "members": list(proposal.roster)}).encode()

    def leave(self, member: str) -> None:
        """Note that a member has left: no later run names it, and a run under way goes on without it."""
        if self.federation.members.state(member) == "joined":
            self.federation.members.leave(member)

    def model(self, member: str, run: str) -> bytes:
        """The files of a run's model, for a member on its roster; else an error, which the member sees, says why."""
        if not run.isalnum():  # it names no other place
            raise ConfigError(wire.NOT_YOURS)
        directory, found = self.federation.runs / run, self.state(run).state
        known = None if found else self._known()
        roster = Run.open(directory).parties if found else known.roster if known and known.run == run else ()
        if member not in roster and not self._starts_from(member, run):
            raise ConfigError(wire.NOT_YOURS)
        if found != FINISHED:
            raise ConfigError(wire.GIVEN_UP if found == ABANDONED else wire.NOT_FINISHED)
        return model_bytes(directory)

    def _starts_from(self, member: str, run: str) -> bool:
        """Whether this member is asked to approve of a run that begins with that one's model."""
        proposal = self._shown()
        return member in proposal.roster and proposal.start.get("run") == run

    # --- the proposal ---------------------------------------------------------------------------------------------

    def _shown(self) -> Proposal:
        """What members see; while the operator's file is broken, being edited say, what was proposed before."""
        try:
            return self.current()
        except ConfigError:
            if (known := self._known()) is None:
                raise ConfigError(NOTHING) from None
            return known

    def current(self) -> Proposal:
        """What is proposed now. It is made anew when the file or the roster has changed, unless it is under way."""
        with taking_turns(self.federation.runs):
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
        """Whether the file, or the roster, has changed since the run under way was agreed: it counts for the next."""
        known = self._known()
        return known is not None and known.differs(self._fresh())

    def _known(self) -> Proposal | None:
        return Proposal.from_bytes(self._proposal.read_bytes()) if self._proposal.exists() else None

    def _fresh(self) -> Proposal:
        federation, keys = self.federation, self.federation.members.keys()
        settings, start = self._settings("run")
        return propose(settings, federation.roster, keys, federation.file.name, secrets.token_hex(8), start)

    def _settings(self, directory: Path | str) -> tuple[RunSettings, dict[str, str]]:
        """The settings of the next run, and the run that it goes on from, if it does, with the hash of its model."""
        settings = self.federation.file.run_settings(directory)
        if settings.start_from is None:
            return settings, {}
        if (found := self.state(settings.start_from).state if settings.start_from.isalnum() else "") != FINISHED:
            why = f"is {found}" if found else "is no run of this federation"
            raise ConfigError(f"start_from: run {settings.start_from[:100]} {why}, and one goes on from a finished run")
        model = self.model_of(settings.start_from)
        start = {"run": settings.start_from, "hash": storage.fingerprint(model)}
        return go_on(settings, Topics.load(model)), start

    def model_of(self, run: str) -> Path:
        """Where the model of a finished run is."""
        return self.federation.runs / run / "model"

    def go_on_from(self, last: str) -> str | None:
        """Let the next run begin with the model of an earlier one, `last` or an id; None: that is proposed already."""
        run = self._last_finished() if last == "last" else last
        path, before = self.federation.directory / FILE, (self.federation.directory / FILE).read_text(encoding="utf-8")
        if self.federation.file.start_from == run:
            return None
        if (known := self._known()) is not None and self.state(known.run).state == UNDER_WAY:
            raise ConfigError(f"run {known.run} is under way: go on from a run when it is finished")
        atomic_write(path, with_value(before, "start_from", run).encode())
        try:
            self._fresh()
        except ConfigError:
            atomic_write(path, before.encode())
            raise
        return run

    def _last_finished(self) -> str:
        """The id of the newest finished run."""
        found = [
            (path.stat().st_mtime_ns, path.parent.name)
            for path in self.federation.runs.glob("*/run.json")
            if self.state(path.parent.name).state == FINISHED
        ]
        if not found:
            raise ConfigError("no run of this federation is finished: there is nothing to go on from yet")
        return max(found)[1]

    def approved(self, proposal: Proposal) -> list[str]:
        """Who has approved just this."""
        facts = self._read(self._approvals)
        wanted = {"run": proposal.run, "plan": proposal.plan}
        return [member for member in proposal.roster if facts.get(member) == wanted]

    # --- runs -----------------------------------------------------------------------------------------------------

    def start(self) -> Run:
        """Make a run of the proposal, if enough members approve of it; `serve` drives it."""
        with taking_turns(self.federation.runs):  # a proposal that is just being started is not made anew
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
        _ = proposal.own_plan  # or it is not complete
        if self.federation.file.engine == "grpc":  # else approvals stay at the parties: who has given none refuses
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
        """Give up the run under way, or stopped, so that something else can be proposed."""
        known = self._known()
        if known is None or self.state(known.run).state not in (UNDER_WAY, STOPPED):
            raise ConfigError("there is no unfinished run to abandon")
        self.end(known.run, ABANDONED, "by the operator")
        return known.run

    def state(self, run: str) -> RunState:
        """How far a run has come: an empty state if it has not been started."""
        directory = self.federation.runs / run
        if not (directory / "run.json").exists():
            return RunState("")
        facts = self._read(directory / "state.json")
        return RunState(str(facts.get("state", UNDER_WAY)), str(facts.get("text", "")))

    def end(self, run: str, state: str, text: str = "") -> None:
        """Note that a run is finished, or why it stopped."""
        facts = json.dumps({"state": state, "text": text}).encode()
        atomic_write(self.federation.runs / run / "state.json", facts)

    def newest(self) -> str | None:
        """The run that was started last, if any was."""
        found = [(path.stat().st_mtime_ns, path.parent.name) for path in self.federation.runs.glob("*/run.json")]
        return max(found)[1] if found else None

    def under_way(self) -> Run | None:
        """The run to be driven, if there is one."""
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
    """The files of a run's model, as they travel."""
    paths = [directory / "model" / name for name in storage.FILES]
    if sum(path.stat().st_size for path in paths) > MOST_BYTES - _MOST_BYTES:
        raise ConfigError(wire.TOO_LONG)
    return encode({path.name: np.frombuffer(path.read_bytes(), np.uint8) for path in paths})
