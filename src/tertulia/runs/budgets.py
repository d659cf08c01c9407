"""What a method announces that it will release, and whether a party's ledger and budgets have room for all of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import PolicyRefusal
from tertulia.federation.party.host import parts_of
from tertulia.federation.party.reports import REPORTS, Foreseen, foresee
from tertulia.federation.types import Planned
from tertulia.methods import entry_of
from tertulia.methods.common.evaluation import plan_score
from tertulia.methods.common.settings import MethodSettings
from tertulia.privacy import accounting
from tertulia.privacy.home import KEY
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Adjacency, Randomiser, Unit
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.policy import Budget, Policy
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


class Forecast(NamedTuple):
    """A budget across runs: what was spent, and what would be after this one."""

    budget: Budget
    spent: float
    after: float
    remarks: tuple[str, ...]


def forecast(settings: RunSettings, party: str, policy: Policy, corpus: Corpus) -> list[Forecast]:
    """What a run would take from each of a party's budgets; of one without any, from what a token has.

    Reports cost for new documents alone, at no more than their epsilon, and again for those that were edited.
    """
    home = settings.parties.get(party, PartySettings()).home
    with closing(open_ledger(home)) as ledger:
        known, marks = ledger.releases(), ledger.marks()
        new, remarks = _added(settings, party, policy, corpus, ledger, home)
    found = []
    for budget in policy.budget or (_UNLIMITED,):
        spent, after = (
            accounting.no_guarantee(budget.delta, marks).epsilon
            if marks
            else accounting.cost(some, budget.unit, budget.adjacency, budget.delta, policy.bounds).epsilon
            for some in (known, [*known, *new])
        )
        found.append(Forecast(budget, spent, after, remarks))
    return found


def _added(
    settings: RunSettings, party: str, policy: Policy, corpus: Corpus, ledger: Ledger, home: str | None
) -> tuple[list[Release], tuple[str, ...]]:
    """The releases that a run would add to a ledger, and how many documents' reports are new."""
    added, remarks = [], []
    for one in announced(settings, party, policy):
        new = [r for r in planned_releases([one], party) if not _is_charged(r, ledger)]
        seen = _foreseen_or_none(settings, party, one, corpus, ledger, home)
        if seen is not None:
            remarks.append(f"{one.mechanism.what}: {seen.new} of {seen.documents} documents are new or edited")
            known = sum(1 for r in ledger.releases() if _same_reports(r, planned_release(one, party)))
            new = [planned_release(one, party, number) for number in range(max(0, seen.versions - known))]
        added += new
    return added, tuple(remarks)


def _foreseen_or_none(
    settings: RunSettings, party: str, one: Planned, corpus: Corpus, ledger: Ledger, home: str | None
) -> Foreseen | None:
    """What is known of the documents whose tokens would be reported, where a list of words is given."""
    terms, key = getattr(settings.method, "vocabulary", None), Path(home or "") / KEY
    if home is None or not key.exists() or terms is None or not terms.words or one.verb != REPORTS:
        return None
    mechanism = cast(Randomiser, one.mechanism)
    if not mechanism.by_document:
        return None
    train = parts_of(corpus, settings.heldout, settings.validation)["train"]
    return foresee(party, ledger, NoiseKey.load(key), train.encode(Vocabulary(terms.words), unknown=True), mechanism)


_UNLIMITED = Budget(unit=Unit.TOKEN, adjacency=Adjacency.SUBSTITUTE, epsilon=sys.float_info.max)


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
    return release.verb == REPORTS and any(_same_reports(known, release) for known in ledger.releases())


def _same_reports(known: Release, release: Release) -> bool:
    return (known.verb, known.name, known.what, known.params) == (REPORTS, release.name, release.what, release.params)


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
