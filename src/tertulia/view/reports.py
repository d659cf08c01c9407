"""What the commands `check`, `disclosures`, `privacy` and `evaluate` say, as rows of plain data."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia import metrics
from tertulia.config import RunSettings
from tertulia.corpus import Corpus
from tertulia.corpus.recipes import read_recipe
from tertulia.errors import InputError, PolicyRefusal
from tertulia.federation.run import Run
from tertulia.federation.types import Planned
from tertulia.method_settings import CustomSettings
from tertulia.models import Topics
from tertulia.privacy.accounting import spent
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Claim
from tertulia.privacy.policy import Policy, example
from tertulia.runs import ledger_of, module_of
from tertulia.sources import POOLED, sources_of

if TYPE_CHECKING:
    import polars as pl

Rows = list[dict[str, Any]]
_DELTA = 1e-6  # at which a plan's epsilon is told
_SEEN = {"each": "the server, singly", "reports": "nobody: noise for what follows"}


def disclosure_rows(run: Run) -> Rows:
    """What left each party, in order."""
    return [
        {
            "party": party,
            "round": release.round,
            "what": release.what,
            "shape": "x".join(map(str, release.shape)) or "1",
            "bytes": release.nbytes,
            "seen": _SEEN.get(release.verb, f"in a {release.verb}"),
            "mechanism": release.name,
            "step": release.step.split(":")[-1],
        }
        for party in run.parties
        for release in ledger_of(run, party).releases()
        if release.run in ("", run.id)  # reports of tokens are charged once for all runs
    ]


def privacy_rows(run: Run, delta: float) -> Rows:
    """Claimed beside honest epsilon."""
    return [
        {
            "party": party,
            "what": row.what,
            "mechanism": row.mechanism,
            "unit": row.unit.value,
            "adjacency": row.adjacency.value,
            "releases": row.releases,
            "claimed epsilon": _claimed(row.claimed),
            "honest epsilon": _epsilon(row.honest.epsilon),
            "remarks": "; ".join([*row.honest.assumptions, *filter(None, (row.vacuous, row.finding))]),
        }
        for party in run.parties
        for row in ledger_of(run, party).table(delta)
    ]


def _claimed(claim: Claim | None) -> str:
    return f"{claim.epsilon:g} ({claim.source})" if claim else "none"


def _epsilon(value: float) -> str:
    return "infinite (non-private)" if math.isinf(value) else f"{value:.4g}"


def check_report(settings: RunSettings) -> dict[str, Any]:
    """What a run would read, train and disclose."""
    corpora = {party: read_recipe(source) for party, source in sources_of(settings).items()}
    method = settings.method
    module = importlib.import_module(module_of(settings))
    config = method.config if isinstance(method, CustomSettings) else method
    planned: list[Planned] = module.plan(config) if hasattr(module, "plan") else []
    costs = [_cost(one) for one in planned]
    parties = [POOLED] if settings.pools else list(corpora)
    return {
        "read": [_read_row(party, corpus) for party, corpus in corpora.items()],
        "train": {"directory": settings.directory, "engine": settings.engine, **method.model_dump(mode="json")},
        "disclosed": [row for party in parties for row in _planned_rows(settings, party, planned, costs)],
    }


def _read_row(party: str, corpus: Corpus) -> dict[str, Any]:
    return {
        "party": party,
        "documents": corpus.n_documents,
        "tokens": corpus.n_tokens,
        "words": len(corpus.vocabulary),
        "rows": corpus.report.summary(),
    }


def _planned_release(planned: Planned, party: str) -> Release:
    step, verb, mechanism, _ = planned
    return Release.of(
        mechanism, id=f"check/{mechanism.what}", run="check", party=party, round=0, step=step.__name__, verb=verb,
        message_hash="", x=np.zeros(0),
    )  # fmt: skip


def _cost(planned: Planned) -> dict[str, str]:
    """Claimed beside honest epsilon of all times that it will be released."""
    release = _planned_release(planned, "any")
    honest = spent([release] * planned.times, release.unit, release.adjacency, _DELTA)
    return {"claimed epsilon": _claimed(release.claimed), "honest epsilon": _epsilon(honest.epsilon)}


def _planned_rows(settings: RunSettings, party: str, planned: list[Planned], costs: list[dict[str, str]]) -> Rows:
    """Ask the party's policy about each planned release; a party without one is checked against the example."""
    own = settings.parties.get(party)
    policy = Policy.load(own.policy) if own and own.policy else Policy.parse(example())
    home = Path(own.home) if own and own.home else None
    ledger = Ledger(home / "ledger.sqlite") if home and (home / "ledger.sqlite").exists() else Ledger(":memory:")
    rows = []
    for one, cost in zip(planned, costs, strict=True):
        _, verb, mechanism, times = one
        try:
            policy.check(_planned_release(one, party), ledger)
            verdict = "allowed"
        except PolicyRefusal as refusal:
            verdict = str(refusal)
        rows.append(
            {"party": party, "what": mechanism.what, "times": times, "verb": verb, "mechanism": mechanism.name,
             **cost, "policy": own.policy if own and own.policy else "default", "verdict": verdict}
        )  # fmt: skip
    return rows


def evaluation(model: Topics, documents: Corpus) -> dict[str, float]:
    """Every score of a model on documents."""
    corpus = model.encode(documents)
    found = metrics.completion(model.topic_word, model.alpha, corpus)
    return {
        "perplexity": found.perplexity,
        "log_likelihood": found.log_likelihood,
        "tokens": found.tokens,
        "documents": found.documents,
        "unigram_perplexity": metrics.completion(metrics.unigram(corpus), 1.0, corpus).perplexity,
        **{name: metrics.topic_coherence(model, corpus, name).mean for name in ("npmi", "c_v", "umass")},
        "diversity": metrics.topic_diversity(model),
    }


def theta_table(model: Topics, corpus: Corpus) -> pl.DataFrame:
    """A row a document: its id, and the share of each topic."""
    import polars as pl

    shares = pl.DataFrame(model.transform(corpus), schema=list(model.get_feature_names_out()))
    return corpus.table.select("id").hstack(shares)


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write Parquet, CSV or JSONL, by the file's name."""
    if path.suffix == ".parquet":
        table.write_parquet(path)
    elif path.suffix == ".csv":
        table.write_csv(path)
    elif path.suffix == ".jsonl":
        table.write_ndjson(path)
    else:
        raise InputError(f"{path}: name the output .parquet, .csv or .jsonl")
