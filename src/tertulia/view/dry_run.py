"""`tertulia check`: report what a run would read, train and disclose, before anything leaves a party."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.corpus.vocabulary import UNKNOWN
from tertulia.federation.party.document_limits import parts_of
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.plan import Plan
from tertulia.federation.types import Planned
from tertulia.methods.common.vocabulary import propose_words, words_of_one_document
from tertulia.privacy import accounting
from tertulia.privacy.adjacency import common_level
from tertulia.privacy.ledger import charging_or_all
from tertulia.privacy.mechanisms import Derived
from tertulia.privacy.policy import Policy, example
from tertulia.runs.budgets import announced, forecast, planned_releases, remainder, verdicts
from tertulia.runs.documents import POOLED, sources_of
from tertulia.runs.one_machine import policy_or_none
from tertulia.runs.plan import plan_of, terms_of
from tertulia.runs.present_documents import present_documents
from tertulia.runs.settings import RunSettings
from tertulia.runs.trial import Documents, trial
from tertulia.view.tables import seen_by, who_learns
from tertulia.view.totals import (
    Lengths,
    Rows,
    claimed_epsilon,
    epsilon,
    in_future,
    remarks_on_places,
    totals_of_plan,
)
from tertulia.view.verdicts import NOT_STATED

_DELTA = 1e-6  # delta of the epsilon of a plan
CHANGED_LISTS = (
    "Masked means have a total weight that the server reads: if a party is in one mean and not in the next, the change "
    "of the total tells its weight, the number of its documents that count. All other whole numbers are added over the "
    "same parties, unless a malicious server asks for them twice, with and without a party."
)


def dry_run(
    settings: RunSettings, known: Mapping[str, Corpus] | None = None, roster: Sequence[str] = ()
) -> dict[str, Any]:
    """Report what a run would read, train and disclose, and the verdicts of its parties' policies.

    `roster` names all members of the run; without it the parties whose documents are known are all.
    """
    sources = sources_of(settings) if known is None else {}
    members = roster or list(sources if known is None else known)
    plan = plan_of(settings, members)  # raises if these parties cannot have such a run
    if known is None:
        known = {party: read_recipe(source) for party, source in sources.items()}
    corpora = {party: present_documents(settings, party, corpus) for party, corpus in known.items()}
    method = settings.method
    parties = [POOLED] if settings.method.pools else list(corpora)
    totals = [] if settings.method.pools else _planned_totals(settings, corpora, plan)
    return {
        "read": [_read_row(settings, party, corpus) for party, corpus in corpora.items()],
        "terms": terms_of(settings),
        "recipient": {name: value or NOT_STATED for name, value in settings.operator},
        "train": {"directory": settings.directory, "engine": settings.engine, **method.model_dump(mode="json")},
        "totals": totals,
        "budgets": [] if settings.method.pools else _budget_rows(settings, corpora),
        "disclosed": [
            row for party in parties for row in _planned_rows(settings, party, partial(corpora.__getitem__, party))
        ],
        "remarks": [
            *_outlook(settings, corpora, plan),
            *_remarks(settings, parties, len(members)),
            *remarks_on_places(totals, len(members)),
        ],
    }


def _outlook(settings: RunSettings, corpora: Mapping[str, Corpus], plan: Plan) -> list[str]:
    """Say what can be learned, from all parties' documents where these are known here."""
    whole = set(corpora) == set(plan.roster)
    share = settings.heldout + settings.validation
    train = [parts_of(corpus, share)["train"] for corpus in corpora.values()] if whole else []
    said = settings.method.outlook(train, math.sqrt(len(plan.roster) / plan.noise_shares))
    return [] if said is None else [said]


def _remarks(settings: RunSettings, parties: Sequence[str], members: int) -> list[str]:
    """Say who would learn what by masked sums, and what they would still tell of single parties."""
    if not settings.federation.secure:
        return []
    planned = (one for party in parties for one in announced(settings, party))
    changed = [CHANGED_LISTS] if any(one.verb == "mean" for one in planned) else []
    return [who_learns(members, settings.federation.min_summed), *changed]


def _read_row(settings: RunSettings, party: str, corpus: Corpus) -> dict[str, Any]:
    proposes = any(one.step is propose_words for one in announced(settings, party))
    train = parts_of(corpus, settings.heldout + settings.validation, hides_words=settings.hides_words)["train"]
    least = (policy_or_none(settings, party) or Policy()).word_minimum(settings.federation.owners)
    return {
        "party": party,
        "documents": corpus.n_documents,
        "tokens": corpus.n_tokens,
        "words": len(corpus.vocabulary) - (UNKNOWN in corpus.vocabulary.index),
        "would leave though in one document only": words_of_one_document(train) if proposes and least == 1 else 0,
        "rows": corpus.report.summary(),
    }


def _cost(one: Planned, planned: list[Planned]) -> dict[str, Any]:
    """Compute claimed and real epsilon over all planned releases; a derived one costs as its sources do."""
    sources = [one]
    if isinstance(one.mechanism, Derived):  # a plan names its parents: reports, or releases
        parents = set(map(str, one.mechanism.parents))
        sources = [p for p in planned if {p.verb, p.mechanism.what} & parents] or [one]
    charged = planned_releases(sources, "any")
    unit, adjacency = common_level((release.unit, release.adjacency) for release in charging_or_all(charged))
    return {
        "claimed epsilon": claimed_epsilon(one.mechanism.claimed),
        "real epsilon": epsilon(accounting.cost(charged, unit, adjacency, _DELTA).epsilon),
        "delta": _DELTA,
    }


def _planned_totals(settings: RunSettings, corpora: Mapping[str, Corpus], plan: Plan) -> Rows:
    """Compute the total cost of all planned releases, for a word, a document, a user."""
    rows = []
    for party, corpus in corpora.items():
        policy = policy_or_none(settings, party) or Policy()
        releases = planned_releases(announced(settings, party, policy), party, plan)
        lengths = Lengths.of(corpus, settings.heldout + settings.validation, hides_words=settings.hides_words)
        rows += [{"party": party, **row} for row in totals_of_plan(releases, lengths, policy, _DELTA)]
    return rows


def _budget_rows(settings: RunSettings, corpora: Mapping[str, Corpus]) -> Rows:
    """Compute what all runs so far have spent, what this run would cost, and what would remain."""
    rows = []
    for party, corpus in corpora.items():
        policy = policy_or_none(settings, party) or Policy()
        for budget, spent, after, remarks in forecast(settings, party, policy, corpus):
            free = math.isinf(spent) or after == spent
            rows.append({
                "party": party,
                "of": f"{budget.unit.value}, {budget.adjacency.value}",
                "delta": budget.delta,
                "spent so far": epsilon(spent),
                "this run": "nothing more" if free else epsilon(after - spent),
                "after it": epsilon(after),
                "budget": f"{budget.epsilon:g}" if policy.budget else "none",
                "left": epsilon(max(0.0, remainder(budget, after))) if policy.budget else "",
                "reports": "; ".join(remarks),
            })  # fmt: skip
    return rows


def _seen(one: Planned, planned: list[Planned], settings: RunSettings) -> dict[str, Any]:
    """Say who would read a planned release, and whether it would be masked."""
    source = any(p.step is one.step and _is_source(one, p) for p in planned)
    seen = seen_by(one.verb, masked=one.masked, min_summed=settings.federation.min_summed)
    return {"seen": seen_by(REPORTS) if source else seen, "masked": one.masked}


def _is_source(one: Planned, other: Planned) -> bool:
    """Return whether another planned release is computed from this one."""
    derived, source = other.mechanism, one.mechanism
    return isinstance(derived, Derived) and not isinstance(source, Derived) and source.what in derived.parents


def _planned_rows(settings: RunSettings, party: str, documents: Documents) -> Rows:
    """Check the whole plan against the party's policy, or against the default policy if it has none."""
    without = Policy.closed() if settings.federation.owners == "several" else Policy.parse(example())
    own, policy = settings.parties.get(party), policy_or_none(settings, party) or without
    planned = announced(settings, party, policy)
    with trial(settings, party, policy, documents) as tried:
        said = verdicts(planned, settings, policy, tried)
    return [
        {"party": party, "what": one.mechanism.what, "times": one.times, **_seen(one, planned, settings),
         "mechanism": one.mechanism.name, **_cost(one, planned),
         "policy": own.policy if own and own.policy else "default", "verdict": in_future(verdict)}
        for one, verdict in zip(planned, said, strict=True)
    ]  # fmt: skip
