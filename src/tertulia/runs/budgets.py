"""The releases that a method announces, and whether a party's ledger and budgets have room for all of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tertulia.corpus import Corpus
from tertulia.errors import PolicyRefusal
from tertulia.federation.fields import capped
from tertulia.federation.plan import Plan
from tertulia.federation.types import Planned
from tertulia.methods.common.evaluation import plan_score
from tertulia.methods.common.settings import MethodSettings
from tertulia.methods.registry import entry_of
from tertulia.privacy.accounting import Guarantee
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Budget, Policy
from tertulia.runs.settings import PartySettings, RunSettings
from tertulia.runs.trial import Documents, Trial, charge_all, planned_release, trial


def announced(settings: RunSettings, party: str, policy: Policy | None = None) -> list[Planned]:
    """List all releases of a party in a run; an epsilon of its own or of its policy can only add noise."""
    method = settings.method
    own = settings.parties.get(party, PartySettings()).own_epsilon
    if own is not None and method.has_noise:
        method = method.with_own_epsilon(own)
    entry = entry_of(method)
    module = importlib.import_module(entry.module)
    planned = module.plan(entry.config) if hasattr(module, "plan") else []
    masks = ("sum", "mean") if settings.federation.secure else ()
    scored = [plan_score(one, policy.score_epsilon if policy else None) for one in planned]
    return [one._replace(masked=one.verb in masks) for one in scored]


def planned_releases(planned: Sequence[Planned], party: str, plan: Plan | None = None) -> list[Release]:
    """Make one release for each planned thing, with the cost of all its repetitions; see `planned_release`."""
    return [planned_release(one, party, plan) for one in planned if one.times]


def check_caps(method: MethodSettings, policy: Policy) -> None:
    """Raise `PolicyRefusal` if settings are beyond the limits of a policy; no document is read."""
    words = 0 if method.vocabulary_settings is None else len(method.vocabulary_settings.words)
    asked = [*capped(method), ("words", words, "max_words")]
    asked += [("topics x words", value * words, "max_cells") for _, value, rule in asked if rule == "max_topics"]
    for name, value, rule in asked:
        most = getattr(policy, rule)
        if value > most:
            raise PolicyRefusal(rule, f"the plan has {name} = {value}, and the policy allows {most}")


def verdicts(planned: Sequence[Planned], settings: RunSettings, policy: Policy, trial: Trial) -> list[str]:
    """Return a policy's verdict on each planned thing: "allowed", or the rule that forbids it.

    Budgets are checked in order, with the ledger's charges and all things before. So a budget forbids the first thing
    that it has no room for, and all things after it.
    """
    said = []
    without_budget, nothing = policy.model_copy(update={"budget": ()}), Ledger(":memory:")
    for one in planned:
        before = trial.ledger.digest()
        try:
            check_caps(settings.method, policy)
            for release in planned_releases([one], ""):
                without_budget.check(release, nothing)
            trial.charge(one)
            if trial.ledger.digest() != before:
                _check_room(policy, trial.ledger, one.mechanism.what)
            said.append("allowed")
        except PolicyRefusal as refusal:
            said.append(str(refusal))
    return said


def check_budgets(settings: RunSettings, party: str, policy: Policy | None, documents: Documents) -> None:
    """Raise `PolicyRefusal` if a party's budgets have no room for the whole run; nothing is charged."""
    if policy is None or not policy.budget:
        return
    check_caps(settings.method, policy)
    with trial(settings, party, policy, documents) as tried:
        before = tried.ledger.digest()
        charge_all(tried, announced(settings, party, policy))
        if tried.ledger.digest() != before:
            _check_room(policy, tried.ledger, f"the whole run at party '{party}'")


class Forecast(NamedTuple):
    """A budget across runs: the epsilon spent so far, and the epsilon after this run."""

    budget: Budget
    spent: float
    after: float
    remarks: tuple[str, ...]


def forecast(settings: RunSettings, party: str, policy: Policy, corpus: Corpus) -> list[Forecast]:
    """Forecast what a run spends of each of a party's budgets; without a budget, the epsilon of a token."""
    budgets = policy.budget or (_UNLIMITED,)
    with trial(settings, party, policy, lambda: corpus) as tried:
        spent = [_cost(budget, policy, tried.ledger).epsilon for budget in budgets]
        remarks = charge_all(tried, announced(settings, party, policy))
        after = [_cost(budget, policy, tried.ledger).epsilon for budget in budgets]
    return [Forecast(*of, remarks) for of in zip(budgets, spent, after, strict=True)]


_UNLIMITED = Budget(unit=Unit.TOKEN, adjacency=Adjacency.SUBSTITUTE, epsilon=sys.float_info.max)


def _cost(budget: Budget, policy: Policy, ledger: Ledger) -> Guarantee:
    return ledger.cost(budget.unit, budget.adjacency, budget.delta, bounds=policy.bounds)


def _check_room(policy: Policy, ledger: Ledger, what: str) -> None:
    """Raise `PolicyRefusal` if a ledger's charges exceed a budget."""
    for budget in policy.budget:
        loss = _cost(budget, policy, ledger)
        if not budget.allows(loss.epsilon):
            would = f"{what} would bring epsilon to {loss.epsilon:.4g} at delta {budget.delta:g}"
            spent = f"beyond {budget.epsilon:g}, with all that left before; fewer rounds or a smaller epsilon cost less"
            raise PolicyRefusal(budget.rule, "; ".join([f"{would}, {spent}", *loss.assumptions]))


def left_of(policy: Policy, home: Path) -> dict[tuple[str, str], float]:
    """Return what is left of each budget, by unit and adjacency."""
    if not policy.budget:
        return {}
    with closing(open_ledger(str(home))) as ledger:
        spent = {(b.unit.value, b.adjacency.value): (b, _cost(b, policy, ledger).epsilon) for b in policy.budget}
    return {kind: remainder(budget, epsilon) for kind, (budget, epsilon) in spent.items()}


def remainder(budget: Budget, spent: float) -> float:
    """Return what is left of a budget; less than a ten-thousandth of it is nothing, as accountants round on a grid.

    >>> budget = Budget(unit="token", epsilon=8.0)
    >>> remainder(budget, 2.0), remainder(budget, 7.99998894)
    (6.0, 0.0)
    """
    left = budget.epsilon - spent
    return 0.0 if 0 < left < 1e-4 * budget.epsilon else left


def open_ledger(home: str | None) -> Ledger:
    """Open a party's ledger; an empty one in memory if there is none yet."""
    path = None if home is None else Path(home) / "ledger.sqlite"
    return Ledger(path) if path is not None and path.exists() else Ledger(":memory:")
