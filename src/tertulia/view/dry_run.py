"""What a run would read, train and disclose, before anything is read by a party or leaves it: `tertulia check`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import PolicyRefusal
from tertulia.federation.party.host import parts_of
from tertulia.federation.types import Planned
from tertulia.methods import entry_of
from tertulia.methods.common.evaluation import plan_score
from tertulia.methods.common.vocabulary import propose_words, words_of_one_document
from tertulia.privacy import accounting
from tertulia.privacy.adjacency import common_level
from tertulia.privacy.ledger import Ledger, Release, charging_or_all
from tertulia.privacy.mechanisms import Derived
from tertulia.privacy.policy import Policy, example
from tertulia.runs.config import RunSettings
from tertulia.runs.rehearsal import policy_or_none
from tertulia.runs.sources import POOLED, sources_of
from tertulia.view.tables import SEEN, claimed_epsilon
from tertulia.view.totals import Lengths, Rows, epsilon, totals_of_plan

_DELTA = 1e-6  # at which a plan's epsilon is computed


def dry_run(settings: RunSettings) -> dict[str, Any]:
    """What a run would read, train and disclose, and what its parties' policies say to that."""
    corpora = {party: read_recipe(source) for party, source in sources_of(settings).items()}
    method = settings.method
    entry = entry_of(method)
    module = importlib.import_module(entry.module)
    planned: list[Planned] = module.plan(entry.config) if hasattr(module, "plan") else []
    costs = [_cost(one, planned) for one in planned]
    parties = [POOLED] if settings.method.pools else list(corpora)
    proposes = any(one.step is propose_words for one in planned)
    return {
        "read": [
            _read_row(party, corpus, settings.heldout + settings.validation, proposes)
            for party, corpus in corpora.items()
        ],
        "train": {"directory": settings.directory, "engine": settings.engine, **method.model_dump(mode="json")},
        "totals": [] if settings.method.pools else _planned_totals(settings, corpora, planned),
        "disclosed": [row for party in parties for row in _planned_rows(settings, party, planned, costs)],
    }


def _read_row(party: str, corpus: Corpus, left_out: float, proposes: bool) -> dict[str, Any]:
    return {
        "party": party,
        "documents": corpus.n_documents,
        "tokens": corpus.n_tokens,
        "words": len(corpus.vocabulary),
        "would leave though in one document only": (
            words_of_one_document(parts_of(corpus, left_out)["train"]) if proposes else 0
        ),
        "rows": corpus.report.summary(),
    }


def _planned_release(planned: Planned, party: str) -> Release:
    step, verb, mechanism, _ = planned
    return Release.of(
        mechanism, id=f"check/{mechanism.what}", run="check", party=party, round=0, step=step.__name__, verb=verb,
        message_hash="", x=np.zeros(0),
    )  # fmt: skip


def _cost(one: Planned, planned: list[Planned]) -> dict[str, str]:
    """Claimed beside real epsilon of all times that it will be released; what is derived costs as its sources do."""
    sources = [one]
    if isinstance(one.mechanism, Derived):  # in a plan its parents are named: reports, or what is released
        parents = set(map(str, one.mechanism.parents))
        sources = [p for p in planned if {p.verb, p.mechanism.what} & parents] or [one]
    charged = [release for p in sources for release in [_planned_release(p, "any")] * p.times]
    unit, adjacency = common_level((release.unit, release.adjacency) for release in charging_or_all(charged))
    return {
        "claimed epsilon": claimed_epsilon(one.mechanism.claimed),
        "real epsilon": epsilon(accounting.cost(charged, unit, adjacency, _DELTA).epsilon),
    }


def _planned_totals(settings: RunSettings, corpora: Mapping[str, Corpus], planned: list[Planned]) -> Rows:
    """What all planned releases would cost together, for a word, a document, a user."""
    terms = getattr(settings.method, "vocabulary", None)
    words = Vocabulary(terms.words) if terms is not None and terms.words else None
    rows = []
    for party, corpus in corpora.items():
        releases = [release for p in planned for release in [_planned_release(p, party)] * p.times]
        lengths = Lengths.of(corpus, words, settings.heldout + settings.validation)
        policy = policy_or_none(settings, party) or Policy()
        rows += [{"party": party, **row} for row in totals_of_plan(releases, lengths, policy, _DELTA)]
    return rows


def _planned_rows(settings: RunSettings, party: str, planned: list[Planned], costs: list[dict[str, str]]) -> Rows:
    """Ask the party's policy about each planned release; a party without one is checked against the example."""
    own = settings.parties.get(party)
    policy = policy_or_none(settings, party) or Policy.parse(example())
    home = Path(own.home) if own and own.home else None
    ledger = Ledger(home / "ledger.sqlite") if home and (home / "ledger.sqlite").exists() else Ledger(":memory:")
    rows = []
    for one, cost in zip(planned, costs, strict=True):
        one = plan_score(one, policy.score_epsilon)
        _, verb, mechanism, times = one
        try:
            policy.check(_planned_release(one, party), ledger)
            verdict = "allowed"
        except PolicyRefusal as refusal:
            verdict = str(refusal)
        rows.append(
            {"party": party, "what": mechanism.what, "times": times, "seen": SEEN.get(verb, verb),
             "mechanism": mechanism.name, **cost, "policy": own.policy if own and own.policy else "default",
             "verdict": verdict}
        )  # fmt: skip
    return rows
