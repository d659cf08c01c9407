"""Releases and budgets of a party for snapshots: time, bytes and protection of each release."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tertulia._disk import read_lines
from tertulia.errors import TertuliaError
from tertulia.federation.party.answer_log import AnswerSizes, answer_sizes
from tertulia.federation.party.context import SCORES
from tertulia.federation.party.door import policy_path_or_none
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.party.reports import REPORTS
from tertulia.methods.common.evaluation import WHAT
from tertulia.privacy.policy import Policy
from tertulia.privacy.releases import Release
from tertulia.privacy.snapshots import Seen, releases_after
from tertulia.runs.budgets import left_of
from tertulia.runs.release_counts import occasion, travelled
from tertulia.view.watch.snapshot import short

_MOST = 400  # number of releases shown
_PAUSE = 5.0  # seconds between two computations of budgets
_UNITS = {"token": "a word", "document": "a document", "user": "a person", "party": "the party"}
Shown = dict[str, Any]


class LedgerMonitor:
    """Monitor of a party's ledger, in its directory of a run or at its home."""

    def __init__(self, directory: Path, run: str) -> None:
        self._directory, self._run = directory, run
        self._seen: list[Seen] = []
        self._last = 0
        self._budgets: list[dict[str, Any]] = []
        self._computed = -math.inf
        self._computed_at = 0  # last entry that the budgets include

    def releases(self, party: str) -> list[Shown]:
        """List what left in this run, at most the newest `_MOST`."""
        for seen in releases_after(self._home / "ledger.sqlite", self._last):
            self._last = seen.seq
            if seen.release.run == self._run and seen.release.verb != REPORTS:
                self._seen.append(seen)
        self._seen = self._seen[-2 * _MOST :]
        return _dots(party, self._seen, self._run, answer_sizes(self._directory))

    @property
    def _home(self) -> Path:
        try:
            return PartyConfig.load(self._directory).home_in(self._directory)
        except TertuliaError:
            return self._directory

    def budgets(self) -> list[dict[str, Any]]:
        """List what is spent of each budget; recompute at most every `_PAUSE` seconds, because it is slow."""
        now = time.monotonic()
        if not self._last or self._last == self._computed_at or now - self._computed < _PAUSE:
            return self._budgets
        self._computed, self._computed_at = now, self._last
        try:
            config = PartyConfig.load(self._directory)
            path = policy_path_or_none(self._directory, config.home, config.owners)
            policy = Policy() if path is None else Policy.load(path)
            left = left_of(policy, self._home)
        except TertuliaError:
            return self._budgets
        self._budgets = [
            {"of": _UNITS[budget.unit.value], "limit": budget.epsilon, "delta": budget.delta,
             "spent": min(budget.epsilon, budget.epsilon - left[budget.unit.value, budget.adjacency.value])}
            for budget in policy.budget
        ]  # fmt: skip
        return self._budgets


def _dots(party: str, seen: Sequence[Seen], run: str, answers: AnswerSizes) -> list[Shown]:
    """Make one dot for each kind of release in each answer; its bytes are those sent, once the answer was sent."""
    shares = travelled([one.release for one in seen], run, answers)
    dots: dict[tuple[str, ...], Shown] = {}
    for one in seen:
        dot = dots.setdefault((one.release.what, *occasion(one.release)), _shown(party, one.time, one.release))
        dot["bytes"] += shares.get(one.release.id, one.release.nbytes)
    return list(dots.values())[-_MOST:]


def _shown(party: str, when: str, release: Release) -> Shown:
    level = "clear" if release.non_private else "noise" if release.charges else "free"
    if release.event is None:  # computed from noisy reports
        level = "noise"
    if level == "clear" and (release.masked or release.verb == "relay"):
        level = "masked" if release.masked else "members"
    return {
        "at": datetime.fromisoformat(when).timestamp() if when else 0.0,
        "party": short(party),
        "what": short(release.what),
        "bytes": 0,
        "level": level,
        "round": release.round,
    }


def scores_in(directory: Path) -> list[list[float]]:
    """Read a party's own scores by round, which it released of its held-out documents."""
    found: dict[int, list[float]] = {}
    for line in read_lines(directory / SCORES)[-2 * _MOST :]:
        if line["text"] == WHAT and isinstance(line.get("round"), int) and isinstance(line.get("value"), float):
            found.setdefault(line["round"] + 1, []).append(line["value"])  # log likelihood, then tokens
    pairs = {round_: values[:2] for round_, values in found.items() if len(values) >= 2 and values[1] > 0}
    scores = [[round_, math.exp(min(-both[0] / both[1], 700.0))] for round_, both in sorted(pairs.items())]
    return [score for score in scores if math.isfinite(score[1])]


def allows_scores(directory: Path) -> bool:
    """Whether scores of single parties may be shown: one owner has all parties, and scores leave without noise."""
    try:
        config = PartyConfig.load(directory)
        path = policy_path_or_none(directory, config.home, config.owners)
        policy = Policy() if path is None else Policy.load(path)
    except TertuliaError:
        return False
    return config.owners == "one" and policy.allow_metrics and policy.score_epsilon is None


def releases_of_history(history: Sequence[Mapping[str, Any]], level: str) -> list[Shown]:
    """List releases as a server knows them: bytes by round; time is the sum over all rounds so far."""
    found, at = [], 0.0
    for facts in history:
        at += float(facts.get("seconds", 0.0))
        for party, (_, up) in facts["bytes"].items():
            if up:
                found.append({"at": at, "party": short(party), "what": "answers", "bytes": up, "level": level,
                              "round": facts["round"]})  # fmt: skip
    return found[-_MOST:]
