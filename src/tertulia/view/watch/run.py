"""Monitor of a run: reads its journal, its pulse and, where parties are on this machine, their ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._locks import seems_held
from tertulia.errors import TertuliaError
from tertulia.federation.plan import Plan
from tertulia.federation.server.live_status import live_status_or_none
from tertulia.metrics.history import Communication, Participation, participation
from tertulia.operations.progress import Progress, forming_or_none, progress_or_none
from tertulia.privacy.policy import Policy
from tertulia.runs.budgets import announced, planned_releases
from tertulia.runs.directory import Run
from tertulia.runs.driver import settings_of
from tertulia.runs.one_machine import policy_or_none
from tertulia.runs.plan import plan_of
from tertulia.runs.results import reason_of
from tertulia.runs.scenarios import kept_rows
from tertulia.runs.settings import RunSettings
from tertulia.view.totals import spent_by_plan, totals
from tertulia.view.verdicts import is_masked, level_of, masked_over, verdict
from tertulia.view.watch.releases import LedgerMonitor, allows_scores, releases_of_history, scores_in
from tertulia.view.watch.snapshot import Snapshot, new_party, new_snapshot, number_or_none, phase_of, short, time_left

_TOPICS, _WORDS, _LINES = 30, 8, 12  # numbers of topics, words per topic, and parties' own lines that are shown
_MARKS = 200  # number of absences shown
_DELTA = 1e-6


class RunMonitor:
    """Monitor of a run's directory; caches what it has read until that changes."""

    def __init__(self, directory: Path, asked: Path | None = None) -> None:
        self.directory, self._asked = directory, asked or directory
        self.run = Run.open(directory)
        self._commit: tuple[str, ...] = ()
        self._so_far: Progress | None = None
        self._known: dict[str, Participation] = {}
        self._gone: list[list[Any]] = []  # rounds that parties have missed
        self._topics: list[dict[str, Any]] = []
        places = {party: self.run.party_directory(party) for party in self.run.parties}
        self._own: dict[str, list[list[float]]] = {}
        self._scored = {p: place for p, place in list(places.items())[:_LINES] if allows_scores(place)}
        self._ledgers = {p: LedgerMonitor(place, self.run.id) for p, place in places.items() if place.exists()}

    @cached_property
    def settings(self) -> RunSettings:
        """Return the settings of the run."""
        return settings_of(self.run)

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the run."""
        self._read_commit()
        history = self._so_far.history if self._so_far else ()
        rounds = self.settings.method.rounds_in_all(continues=self.settings.start_from is not None) or 2
        pulse = live_status_or_none(self.directory / "server")
        state = self._state()
        found = new_snapshot(
            self._asked.name,
            run=self.run.id[:8], method=self.settings.method.name, state=state, round=len(history),
            rounds=max(rounds, len(history)), left=time_left(history, rounds) if state == "under way" else None,
            again="" if state == "finished" else f"tertulia resume {self.directory}",
            text=str(self.directory.relative_to(self._asked)) if self.directory != self._asked else "",
            doing=phase_of(str(pulse["step"])) if pulse and state == "under way" else "", verdict=self._verdict,
            scores=[[f["round"], s] for f in history if (s := number_or_none(f.get("perplexity"))) is not None],
            levels=self._levels(), gone=self._gone, topics=self._topics,
            own=self._own,
        )  # fmt: skip
        found["parties"] = self._parties(history, pulse, state)
        found["releases"] = self._releases(history)
        return found

    def _read_commit(self) -> None:
        names = tuple(sorted(path.name for path in (self.directory / "server").glob("commit-*.safetensors")))
        if names == self._commit or not names:
            return
        found = progress_or_none(self.run)
        if found is not None:
            self._commit, self._so_far = names, found
            self._known = participation(found.history, self.run.parties)
            self._gone = self._absences()
            self._topics = self._forming(found.state)
            self._own = {short(p): scores for p, place in self._scored.items() if (scores := scores_in(place))}

    def _state(self) -> str:
        if (self.directory / "model" / "model.json").exists():
            return "finished"
        return "under way" if seems_held(self.directory) or not self._commit else "stopped"

    def _forming(self, state: Any) -> list[dict[str, Any]]:
        """List the heaviest topics with their words; mark words that are new."""
        try:
            found = forming_or_none(self.settings.method, state)
        except TertuliaError:
            found = None
        if found is None:
            return self._topics
        weights = found.weights
        order = range(len(found.topic_word)) if weights is None else np.argsort(-weights, kind="stable")
        before = {topic["number"]: {word for word, *_ in topic["words"]} for topic in self._topics}
        shown = []
        for k in list(map(int, order))[:_TOPICS]:
            row = found.topic_word[k]
            tops = np.argsort(-row, kind="stable")[:_WORDS]
            words = [[short(found.words[v], 30), round(float(row[v]), 5)] for v in tops]
            known = before.get(k)
            share = None if weights is None else round(float(weights[k] / max(weights.sum(), 1e-300)), 4)
            fresh = [[word, p, known is not None and word not in known] for word, p in words]
            shown.append({"number": k, "share": share, "words": fresh})
        return shown

    @cached_property
    def _verdict(self) -> dict[str, str] | None:
        return verdict_of_plan_or_none(self.settings, self.run.parties)

    def _levels(self) -> dict[str, float]:
        """Return the perplexity of alone and pooled models, where it is known."""
        rows = {str(row["scenario"]): number_or_none(row.get("perplexity")) for row in kept_rows(self._asked)}
        chosen = {"alone": rows.get("alone"), "pooled": rows.get("pooled")}
        return {name: value for name, value in chosen.items() if value is not None}

    def _parties(
        self, history: Sequence[Mapping[str, Any]], pulse: Mapping[str, Any] | None, state: str
    ) -> list[dict[str, Any]]:
        sent = Communication.of(history).by_party
        cards = []
        for party in self.run.parties:
            down, up = sent.get(party, (0, 0))
            ledger = self._ledgers.get(party)
            card = new_party(party, up=up, down=down, budgets=ledger.budgets() if ledger else [])
            card |= rounds_of(self._known.get(party))
            cards.append({**card, **presence(party, pulse, self._joins(party, len(history)), state)})
        return cards

    def _absences(self) -> list[list[Any]]:
        """List the last rounds that members missed, for each after it has joined."""
        gone = []
        for party, one in self._known.items():
            missed = one.missed()[-_MARKS:]
            gone += [[number, short(party)] for number in missed if not self._joins(party, number - 1)]
        return sorted(gone)[-_MARKS:]

    def _joins(self, party: str, round_: int) -> bool:
        own = self.settings.parties.get(party)
        return own is not None and round_ < (own.joins or 0)

    def _releases(self, history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        found = [one for party, ledger in self._ledgers.items() for one in ledger.releases(party)]
        if not self._ledgers:
            said = self._verdict["text"] if self._verdict else ""
            noisy = said and level_of(said) != "bad" and not is_masked(said)
            clear = "masked" if self.settings.federation.secure else "clear"
            return releases_of_history(history, "noise" if noisy else clear)
        return sorted(found, key=lambda one: one["at"])[-400:]


def presence(party: str, pulse: Mapping[str, Any] | None, joins_later: bool, state: str) -> dict[str, Any]:
    """Return a party's state and activity, from the last request to it."""
    if pulse is None or (joins_later and party not in pulse["asked"]):
        return {"state": "joining", "phase": "reading" if not joins_later else "joins later"}
    silent = pulse.get("silent", {})
    seconds = number_or_none(pulse.get("seconds"))
    if party in silent:
        refused = reason_of(str(silent[party])).startswith("refused")
        return {"state": "refused" if refused else "absent", "why": short(silent[party], 200), "phase": ""}
    busy = pulse.get("answered") is None and party in pulse["asked"] and state == "under way"
    idle = "has answered" if state == "under way" else state
    return {"state": "here", "phase": phase_of(str(pulse["step"])) if busy else idle, "seconds": seconds}


def rounds_of(known: Participation | None) -> dict[str, Any]:
    """Describe the rounds in which a party took part; nothing if it missed none."""
    if known is None or known.is_complete:
        return {}
    said = f"took part in {known}" if known.rounds else f"took part in none of {known.of} rounds"
    return {"took_part": said, "missed_many": known.missed_many}


def verdict_of_plan_or_none(
    settings: RunSettings, parties: Sequence[str], own: Policy | None = None, plan: Plan | None = None
) -> dict[str, str] | None:
    """Return the verdict on the plan for the party that it protects least; None for a method without a plan.

    `plan` is needed where `parties` are not all members.
    """
    if settings.method.pools:
        return None
    said = []
    for party in parties:
        try:
            plan = plan or plan_of(settings, parties)
            policy = own or policy_or_none(settings, party) or Policy()
            planned = announced(settings, party, policy)
            releases = planned_releases([one._replace(times=min(one.times, 1)) for one in planned], party, plan)
            if not any(release.non_private for release in releases):  # else one release of each kind decides
                releases = planned_releases(planned, party, plan)
        except (TertuliaError, ImportError):
            return None
        if not releases:
            return None
        masked = masked_over(releases, settings.federation.min_summed)
        said.append(verdict(totals(releases, spent_by_plan(releases, _DELTA), None, policy), masked=masked))
    worst = min(said, key=lambda one: ("bad", "weak", "good").index(level_of(one)), default=None)
    return None if worst is None else {"level": level_of(worst), "text": worst}
