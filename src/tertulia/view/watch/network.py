"""Monitors of a federation at its server, and of a party at its own site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tertulia._locks import seems_held
from tertulia.errors import TertuliaError
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.models import Topics
from tertulia.network.endings import ABANDONED, FINISHED, STOPPED, UNDER_WAY, ending_or_none
from tertulia.network.party.attendant import participation_at, said_by
from tertulia.network.party.party_directory import PartyDirectory
from tertulia.network.server.federation_directory import FederationDirectory
from tertulia.network.server.run_registry import RunRegistry
from tertulia.operations.status import last_status
from tertulia.runs.release_counts import settings_or_none
from tertulia.view.watch.releases import LedgerMonitor, scores_in
from tertulia.view.watch.run import RunMonitor, rounds_of, verdict_of_plan_or_none
from tertulia.view.watch.snapshot import Snapshot, new_party, new_snapshot, number_or_none, short

_UNFETCHED = "the model's topics are shown once it is fetched"
_ENDED = {
    FINISHED: _UNFETCHED,
    STOPPED: "the server has stopped it: the operator can start it again",
    ABANDONED: "the operator has given it up",
}


class FederationMonitor:
    """Monitor of a federation at its server: connected members, and the newest run."""

    def __init__(self, directory: Path) -> None:
        self._federation = FederationDirectory(directory)
        self._registry = RunRegistry(self._federation)
        self._runs: dict[str, RunMonitor] = {}

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the newest run, with the connection of each member."""
        directory = self._federation.directory
        newest, facts = self._registry.newest(), last_status(directory)
        serving = seems_held(directory)
        connected = facts.get("connected", {}) if serving else {}
        if newest is None:
            found = new_snapshot(directory.name, text="no run has begun yet")
        else:
            if newest not in self._runs:
                self._runs[newest] = RunMonitor(self._federation.runs / newest)
            found = self._runs[newest].snapshot()
            state = self._registry.state(newest)
            going = state.state == UNDER_WAY
            found |= {"title": short(directory.name), "text": short(state.text, 300)}
            found["state"] = ("under way" if serving else "stopped") if going else state.state
            found["again"] = "" if not going or serving else f"tertulia serve {directory}"
        known = {card["name"]: card for card in found["parties"]}
        members = self._federation.members
        found["parties"] = [
            _member(known.get(short(name), new_party(name)), members.state(name), name in connected, serving)
            for name in members.names
        ]
        return found


def _member(card: dict[str, Any], state: str, connected: bool, serving: bool) -> dict[str, Any]:
    """Set the state of a member: here if connected, else absent, or joining."""
    if state == "invited":
        return {**card, "state": "joining", "why": "invited"}
    if state != "joined":
        return {**card, "state": "absent", "why": short(state), "phase": "", "seconds": None}
    if not connected:
        why = "not connected" if serving else "the server does not run"
        return {**card, "state": "absent", "why": why, "phase": "", "seconds": None}
    return card if card["state"] == "refused" else {**card, "state": "here", "why": ""}


class PartyMonitor:
    """Monitor of a party at its site: the party itself and the shared model, nothing of other parties."""

    def __init__(self, directory: Path) -> None:
        self._party = PartyDirectory(directory)
        self._name = self._party.file.name
        self._ledger: LedgerMonitor | None = None
        self._run = ""
        self._topics: list[dict[str, Any]] = []
        self._took_part: dict[str, Any] | None = None  # from the fetched model, read once
        self._verdict: dict[str, str] | None = None

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the newest approved run."""
        party = self._party
        runs = party.run_directories()
        found = new_snapshot(self._name)
        attending = seems_held(party.runs)
        said = said_by(party)
        here = attending and bool(said.get("connected"))
        own = new_party(self._name, state="here" if here else "absent", why="" if here else "not connected")
        if not runs:
            return {**found, "text": "no run was approved yet", "parties": [own]}
        directory = runs[-1]
        config = PartyConfig.load(directory)
        if self._run != config.run:
            self._run, self._ledger, self._topics = config.run, LedgerMonitor(directory, config.run), []
            self._took_part = None
            self._verdict = self._judge(config)
        assert self._ledger is not None
        method = config.plan["method"] if config.plan else ""
        answered = said.get("run") == config.run
        round_ = int(said.get("round", 0)) if answered else 0
        fetched = (directory / "model" / "model.json").exists()
        own |= {
            "phase": f"round {round_}" if answered else "approved", "up": int(said.get("up", 0)) if answered else 0,
            "down": int(said.get("down", 0)) if answered else 0, "budgets": self._ledger.budgets(),
            "seconds": number_or_none(said.get("seconds")) if answered else None,
            **self._rounds(directory, fetched),
        }  # fmt: skip
        settings = settings_or_none(Plan.from_dict(config.plan)) if config.plan else None
        rounds = 1 if settings is None else settings.method.planned_rounds or 1
        found |= {
            "run": config.run[:8], "method": short(method), "round": round_,
            "rounds": max(rounds, round_),
            "state": "finished" if fetched else "under way" if attending else "waiting",
            "text": "" if fetched else _UNFETCHED if attending else "it does not attend",
            "verdict": self._verdict,
            "again": "" if attending else f"tertulia attend {party.directory}",
            **self._ended(directory, own, fetched, rounds),
            "parties": [own], "releases": self._ledger.releases(self._name),
            "own": {short(self._name): scores} if (scores := scores_in(directory)) else {},
            "topics": self._fetched(directory) if fetched else [],
        }  # fmt: skip
        return found

    def _judge(self, config: PartyConfig) -> dict[str, str] | None:
        """Return the verdict on the plan for this party."""
        plan = Plan.from_dict(config.plan) if config.plan else None
        settings = None if plan is None else settings_or_none(plan)
        return None if settings is None else verdict_of_plan_or_none(settings, [self._name], self._party.policy, plan)

    def _rounds(self, directory: Path, fetched: bool) -> dict[str, Any]:
        """Return the rounds in which this party took part, once it has fetched the model."""
        if self._took_part is None and fetched:
            self._took_part = rounds_of(participation_at(directory, self._name))
        return self._took_part or {}

    def _ended(self, directory: Path, own: dict[str, Any], fetched: bool, rounds: int) -> Snapshot:
        """Return the fields of an ended run, as the server reported them; none before the end."""
        ending = ending_or_none(directory)
        if ending is None or not ending.is_over:
            return {}
        own["phase"] = ending.state
        again = f"tertulia fetch {self._party.directory}" if ending.state == FINISHED and not fetched else ""
        text = "" if fetched else _ENDED[ending.state]
        ended = {"state": ending.state, "text": text, "again": again, "round": ending.round}
        return {**ended, "rounds": ending.round if ending.state == FINISHED else max(rounds, ending.round)}

    def _fetched(self, directory: Path) -> list[dict[str, Any]]:
        """Return the topics of the fetched model."""
        if not self._topics:
            try:
                model = Topics.load(directory / "model")
            except TertuliaError:
                return []
            order = sorted(model, key=lambda topic: -(topic.weight or 0.0))[:30]
            self._topics = [
                {"number": t.number, "share": t.weight, "words": [[short(w, 30), p, False] for w, p in t.words[:8]]}
                for t in order
            ]
        return self._topics
