"""What a run disclosed and what that cost, a model's scores and its topic shares: rows of plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tertulia import metrics
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.federation.messages import DISCLOSURES
from tertulia.federation.party.host import PartyHost
from tertulia.models import Topics
from tertulia.models.reading import warn_of_few
from tertulia.privacy.accounting import vacuity_or_none
from tertulia.privacy.mechanisms import Claim, Unit
from tertulia.runs.layout import Run
from tertulia.runs.rehearsal import ask_hosts, hosts_of
from tertulia.view.totals import Rows, epsilon, totals_of_host

if TYPE_CHECKING:
    import polars as pl

SEEN = {  # until replies are added up under masks, nothing keeps the server's machine from reading each of them
    "each": "singly by the server",
    "sum": "singly by the server's machine, as a sum by the method",
    "mean": "singly by the server's machine, as a mean by the method",
    "reports": "nobody: noise for what follows",
}


def disclosure_rows(run: Run) -> Rows:
    """What left each party, in order."""
    return disclosures_of_hosts(hosts_of(run))


def disclosures_of_hosts(hosts: Sequence[PartyHost]) -> Rows:
    """The same of parties that are open."""
    return [
        {
            "party": party,
            "round": release["round"],
            "what": release["what"],
            "shape": _shape(release["shape"]),
            "bytes": release["bytes"],
            "seen": SEEN.get(release["verb"], "singly by the server"),
            "mechanism": release["mechanism"],
            "step": release["step"].split(":")[-1],
        }
        for party, releases in ask_hosts(hosts, DISCLOSURES).items()
        for release in releases
    ]


def grouped(rows: Rows) -> Rows:
    """Disclosures of one kind in one row: when, how often, and how many bytes in all."""
    kinds: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        kinds.setdefault((row["party"], row["what"], row["mechanism"], row["seen"]), []).append(row)
    return [
        {
            "party": party,
            "what": what,
            "rounds": _range([row["round"] for row in same]),
            "times": len(same),
            "bytes": sum(row["bytes"] for row in same),
            "mechanism": mechanism,
        }
        for (party, what, mechanism, _), same in kinds.items()
    ]


def readers(rows: Rows) -> list[str]:
    """Who sees which disclosures, a line for each kind of reader."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row["seen"], {})[row["what"]] = None
    return [f"seen {seen}: {', '.join(things)}" for seen, things in found.items()]


def _range(rounds: Sequence[int]) -> str:
    """The first and the last of some rounds.

    >>> _range([1, 2, 3]), _range([0])
    ('1-3', '0')
    """
    return f"{min(rounds)}-{max(rounds)}" if len(set(rounds)) > 1 else str(rounds[0])


def _shape(shape: tuple[int, ...] | None) -> str:
    """Of an array that left, 1 for a number; nothing for what did not leave."""
    return "" if shape is None else "x".join(map(str, shape)) or "1"


def privacy_totals(run: Run, delta: float) -> Rows:
    """The real epsilon of everything that left each party, for a word, a document, a user."""
    return [row for host in hosts_of(run) for row in totals_of_host(host, delta)]


def privacy_rows(run: Run, delta: float) -> Rows:
    """Claimed beside real epsilon, thing by thing; what is derived has the cost of its sources, and adds none."""
    return privacy_of_hosts(hosts_of(run), delta)


def privacy_of_hosts(hosts: Sequence[PartyHost], delta: float) -> Rows:
    """The same of parties that are open."""
    shown = (
        "party",
        "what",
        "mechanism",
        "unit",
        "adjacency",
        "releases",
        "claimed epsilon",
        "real epsilon",
        "remarks",
    )
    rows = [row for host in hosts for row in thing_rows(host, delta)]
    return [{name: row[name] for name in shown} for row in rows]


def thing_rows(host: PartyHost, delta: float) -> Rows:
    """The same of one party, with all that is known: bytes, the verb, and why a guarantee means nothing, if so."""
    releases = host.ledger.releases()
    verbs = {(release.what, release.name): release.verb for release in releases}
    known = [release.params.get("words") for release in releases]
    words = max((number for number in known if isinstance(number, int)), default=0) or None
    units = _populations(host)
    return [
        {
            "party": host.config.id,
            "what": row.what,
            "verb": verbs[row.what, row.mechanism],
            "bytes": row.nbytes,
            "mechanism": row.mechanism,
            "unit": row.unit.value,
            "adjacency": row.adjacency.value,
            "releases": row.releases,
            "claimed epsilon": claimed_epsilon(row.claimed),
            "real epsilon": epsilon(row.real.epsilon),
            "vacuous": vacuous,
            "remarks": "; ".join(filter(None, (_as(row.sources), *row.real.assumptions, vacuous, row.finding))),
        }
        for row, pure in zip(host.ledger.table(delta), host.ledger.table(0.0), strict=True)
        for population in [units.get(row.unit) if math.isinf(pure.real.epsilon) else None]  # else delta is not needed
        for vacuous in [vacuity_or_none(row.real, row.adjacency, population, words)]
    ]


def _populations(host: PartyHost) -> dict[Unit, int]:
    """How many units a party has, of those kinds that can be counted: a delta must be far below one in them."""
    if not (host.directory / "corpus" / "corpus.json").exists():
        return {}
    train = host.parts["train"]
    return {Unit.TOKEN: train.n_tokens, Unit.DOCUMENT: train.n_documents}


def _as(sources: Sequence[str]) -> str:
    return f"as its source: {', '.join(sources)}" if sources else ""


def claimed_epsilon(claim: Claim | None) -> str:
    """What is claimed, with its source."""
    return f"{claim.epsilon:g} ({claim.source})" if claim else "none"


def evaluation(model: Topics, documents: Corpus) -> dict[str, float]:
    """All scores of a model on documents."""
    corpus = model.encode(documents)
    warn_of_few(corpus.n_documents, "a score, and coherence with these as its reference,")
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


def theta_table(model: Topics, corpus: Corpus, n_jobs: int = 1) -> pl.DataFrame:
    """A row for each document: its id, and the share of each topic."""
    import polars as pl

    shares = pl.DataFrame(model.transform(corpus, n_jobs=n_jobs), schema=list(model.get_feature_names_out()))
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
