"""A federation of houses as its server sees it, and a party as it sees itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tertulia._locks import seems_held
from tertulia.errors import TertuliaError
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.models import Topics
from tertulia.runs.desk import UNDER_WAY, Desk
from tertulia.runs.federations import Federation
from tertulia.runs.kept_plans import settings_or_none
from tertulia.runs.membership import PartyDirectory
from tertulia.runs.noting import said
from tertulia.view.watch.releases import LedgerScene, scores_in
from tertulia.view.watch.scene import Look, new_look, new_party, number_or_none, short
from tertulia.view.watch.trained import RunScene, verdict_of_plan_or_none

_UNFETCHED = "the model's topics are shown once it is fetched"


class FederationScene:
    """A federation's directory at its server: who is connected, and the newest run."""

    def __init__(self, directory: Path) -> None:
        self._federation = Federation(directory)
        self._desk = Desk(self._federation)
        self._runs: dict[str, RunScene] = {}

    def look(self) -> Look:
        """The newest run, with each member as it is connected now."""
        directory = self._federation.directory
        newest, facts = self._desk.newest(), said(directory)
        serving = seems_held(directory)
        connected = facts.get("connected", {}) if serving else {}
        if newest is None:
            found = new_look(directory.name, text="no run has begun yet")
        else:
            if newest not in self._runs:
                self._runs[newest] = RunScene(self._federation.runs / newest)
            found = self._runs[newest].look()
            state = self._desk.state(newest)
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
    """Who is connected is here, whatever it answered last; who is not is absent, or has yet to join."""
    if state == "invited":
        return {**card, "state": "joining", "why": "invited"}
    if state != "joined":
        return {**card, "state": "absent", "why": short(state), "phase": "", "seconds": None}
    if not connected:
        why = "not connected" if serving else "the server does not run"
        return {**card, "state": "absent", "why": why, "phase": "", "seconds": None}
    return card if card["state"] == "refused" else {**card, "state": "here", "why": ""}


class PartyScene:
    """A party's own directory: itself, and what all have in common. Nothing of others is here."""

    def __init__(self, directory: Path) -> None:
        self._party = PartyDirectory(directory)
        self._name = self._party.file.name
        self._ledger: LedgerScene | None = None
        self._run = ""
        self._topics: list[dict[str, Any]] = []
        self._verdict: dict[str, str] | None = None

    def look(self) -> Look:
        """The newest run that was approved."""
        party = self._party
        runs = party.run_directories()
        found = new_look(self._name)
        attending = seems_held(party.runs)
        status = self._said() if attending else {}
        here = bool(status.get("connected"))
        own = new_party(self._name, state="here" if here else "absent", why="" if here else "not connected")
        if not runs:
            return {**found, "text": "no run was approved yet", "parties": [own]}
        directory = runs[-1]
        config = PartyConfig.load(directory)
        if self._run != config.run:
            self._run, self._ledger, self._topics = config.run, LedgerScene(directory, config.run), []
            self._verdict = self._judge(config)
        assert self._ledger is not None
        method = config.plan["method"] if config.plan else ""
        answered = status.get("run") == config.run
        round_ = int(status.get("round", 0)) if answered else 0
        fetched = (directory / "model" / "model.json").exists()
        own |= {
            "phase": f"round {round_}" if answered else "approved", "up": int(status.get("up", 0)),
            "down": int(status.get("down", 0)), "budgets": self._ledger.budgets(),
            "seconds": number_or_none(status.get("seconds")),
        }  # fmt: skip
        settings = config.plan["settings"] if config.plan else {}
        found |= {
            "run": config.run[:8], "method": short(method), "round": round_,
            "rounds": max(int(settings.get("rounds") or 1), round_),
            "state": "finished" if fetched else "under way" if attending else "waiting",
            "text": "" if fetched else _UNFETCHED if attending else "it does not attend",
            "verdict": self._verdict,
            "again": "" if attending else f"tertulia attend {party.directory}",
            "parties": [own], "releases": self._ledger.releases(self._name), "sizes": "before packing",
            "own": {short(self._name): scores} if (scores := scores_in(directory)) else {},
            "topics": self._fetched(directory) if fetched else [],
        }  # fmt: skip
        return found

    def _judge(self, config: PartyConfig) -> dict[str, str] | None:
        """What the plan lets out of this party."""
        settings = settings_or_none(Plan.from_dict(config.plan)) if config.plan else None
        return None if settings is None else verdict_of_plan_or_none(settings, [self._name], self._party.policy)

    def _said(self) -> dict[str, Any]:
        try:
            facts = json.loads((self._party.directory / "status.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return facts if isinstance(facts, dict) else {}

    def _fetched(self, directory: Path) -> list[dict[str, Any]]:
        """The shared model's topics, once it was fetched."""
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
