"""What a method announces that it will release, and whether a party's ledger and budgets have room for all of it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from tertulia.errors import PolicyRefusal
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.types import Planned
from tertulia.methods import entry_of
from tertulia.methods.common.evaluation import plan_score
from tertulia.methods.common.settings import MethodSettings
from tertulia.privacy import accounting
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.policy import Policy
from tertulia.runs.config import PartySettings, RunSettings


def announced(settings: RunSettings, party: str, policy: Policy | None = None) -> list[Planned]:
    """Everything that will leave a party; its own epsilon and its policy's, if it has one, only make things noisier."""
    method = settings.method
    own = getattr(settings.parties.get(party), "epsilon", None)
    if own is not None and getattr(method, "mode", "clear") != "clear":
        method = _limited(method, own)
    entry = entry_of(method)
    module = importlib.import_module(entry.module)
    planned = module.plan(entry.config) if hasattr(module, "plan") else []
    return [plan_score(one, policy.score_epsilon if policy else None) for one in planned]


def _limited(method: MethodSettings, own: float) -> MethodSettings:
    """A method's settings as they are for a party that allows no more than its own epsilon."""
    asked = getattr(method, "epsilon", None)
    if asked is not None:
        return method.replace(epsilon=min(own, asked))
    return method.replace(epsilon=own, sigma=None) if "sigma" in type(method).model_fields else method


def planned_release(planned: Planned, party: str, number: int = 0) -> Release:
    """A planned release as a ledger would hold it, one of several of its kind."""
    step, verb, mechanism, _ = planned
    return Release.of(
        mechanism, id=f"check/{step.__name__}/{verb}/{mechanism.what}/{number}", run="check", party=party, round=number,
        step=step.__name__, verb=verb, message_hash="", x=np.zeros(0),
    )  # fmt: skip


def planned_releases(planned: Sequence[Planned], party: str) -> list[Release]:
    """Everything planned, each thing as often as it will be released."""
    return [planned_release(one, party, number) for one in planned for number in range(one.times)]


def verdicts(planned: Sequence[Planned], party: str, policy: Policy, ledger: Ledger) -> list[str]:
    """What a policy says to each planned thing: "allowed", or the rule that forbids it.

    Budgets are asked about everything up to and with that thing, beside what the ledger holds. So where one is
    exceeded, it is from the first thing on for which it has no room.
    """
    said, known = [], ledger.releases()
    without_budget, nothing = policy.model_copy(update={"budget": ()}), Ledger(":memory:")
    for one in planned:
        new = planned_releases([one], party)
        known += [release for release in new if not _is_charged(release, ledger)]
        try:
            for release in new[:1]:
                without_budget.check(release, nothing)
                if release.charges:
                    _check_room(known, policy, ledger, one.mechanism.what)
            said.append("allowed")
        except PolicyRefusal as refusal:
            said.append(str(refusal))
    return said


def check_budgets(settings: RunSettings, party: str, policy: Policy | None) -> None:
    """Raise `PolicyRefusal` if a party's budgets have no room for the whole run: nothing has been charged by then."""
    if policy is None or not policy.budget:
        return
    ledger = open_ledger(settings.parties.get(party, PartySettings()).home)
    planned = planned_releases(announced(settings, party, policy), party)
    new = [release for release in planned if not _is_charged(release, ledger)]
    if any(release.charges for release in new):
        _check_room([*ledger.releases(), *new], policy, ledger, f"the whole run at party '{party}'")


def _check_room(releases: Sequence[Release], policy: Policy, ledger: Ledger, what: str) -> None:
    """Raise `PolicyRefusal` if these releases together are beyond a budget."""
    for budget in policy.budget:
        if marks := ledger.marks():
            loss = accounting.no_guarantee(budget.delta, marks)
        else:
            loss = accounting.cost(releases, budget.unit, budget.adjacency, budget.delta, policy.bounds)
        if loss.epsilon > budget.epsilon:
            would = f"{what} would bring epsilon to {loss.epsilon:.4g} at delta {budget.delta:g}"
            spent = f"beyond {budget.epsilon:g}, with all that left before; fewer rounds or a smaller epsilon cost less"
            raise PolicyRefusal(budget.rule, "; ".join([f"{would}, {spent}", *loss.assumptions]))


def _is_charged(release: Release, ledger: Ledger) -> bool:
    """Whether a party's ledger has these reports: drawn once, they cost nothing in later runs.

    Documents that have come since are reported when they are asked for: then the ledger decides.
    """
    return release.verb == REPORTS and any(
        (known.verb, known.name, known.what, known.params) == (REPORTS, release.name, release.what, release.params)
        for known in ledger.releases()
    )


def left_of(policy: Policy, home: Path) -> dict[tuple[str, str], float]:
    """What is left of each budget, by unit and adjacency."""
    if not policy.budget:
        return {}
    with closing(open_ledger(str(home))) as ledger:
        releases, marks = ledger.releases(), ledger.marks()
    spent = {
        budget: accounting.no_guarantee(budget.delta, marks)
        if marks
        else accounting.cost(releases, budget.unit, budget.adjacency, budget.delta, policy.bounds)
        for budget in policy.budget
    }
    return {(b.unit.value, b.adjacency.value): b.epsilon - loss.epsilon for b, loss in spent.items()}


def open_ledger(home: str | None) -> Ledger:
    """A party's ledger as it is now: an empty one where there is none yet."""
    path = None if home is None else Path(home) / "ledger.sqlite"
    return Ledger(path) if path is not None and path.exists() else Ledger(":memory:")
