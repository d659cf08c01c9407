"""Rows of plain data: disclosures of a run and their cost, scores of a model, topic shares of documents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tertulia import metrics
from tertulia._plain import write_csv
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import REPORTS
from tertulia.federation.plan import MIN_SUMMED
from tertulia.federation.secure.lists import colluding, threshold
from tertulia.federation.types import min_holders
from tertulia.models import Topics
from tertulia.models.display import warn_of_few
from tertulia.privacy.accounting import vacuity_or_none
from tertulia.runs.directory import Run
from tertulia.runs.one_machine import hosts_of
from tertulia.runs.release_counts import Left, disclosed_by, left_of_host
from tertulia.view.totals import Rows, claimed_epsilon, epsilon, has_documents, populations, totals_of_host

if TYPE_CHECKING:
    import polars as pl

NOT_RECORDED = "not recorded"  # the bytes of a temporary run
SEEN = {  # without masked sums, the server's machine can read each reply
    "each": "singly by the server",
    "sum": "singly by the server's machine, as a sum by the method",
    "mean": "singly by the server's machine, as a mean by the method",
    "relay": "members only: the server passes it on, and cannot read it",
    REPORTS: "nobody: noise for what follows",
}
_MASKED = "masked: only the total over at least {} parties"


def seen_by(verb: str, *, masked: bool = False, min_summed: int = MIN_SUMMED) -> str:
    """Say who can read what leaves by a verb.

    >>> seen_by("sum", masked=True)
    'masked: only the total over at least 3 parties'
    """
    return _MASKED.format(min_summed) if masked else SEEN.get(verb, SEEN["each"])


def who_learns(members: int, min_summed: int) -> str:
    """Say what the server learns by masked sums: alone, and together with members.

    >>> who_learns(5, 3).partition(":")[0]
    'Secure sums'
    """
    least, few = max(min_summed, threshold(members)), colluding(members)
    helped = "one member" if few == 1 else f"up to {few} members"
    return (
        f"Secure sums: the server, alone or together with {helped}, learns totals over at least {least} of the "
        f"{members} parties, and words that {min_holders(members)} of them have. Members learn what the server sends "
        "them: totals, and the words. A server that makes up its questions, or asks for the same numbers twice, with "
        "and without a party, can learn more by totals: against it only noise protects."
    )


def min_summed_at(host: PartyHost) -> int:
    """Return the fewest parties whose total the server of a party's run may learn."""
    return MIN_SUMMED if host.door.plan is None else host.door.plan.min_summed


def disclosure_rows(run: Run) -> Rows:
    """List what left each party of a run, in order."""
    return disclosures_of_hosts(hosts_of(run))


def disclosures_of_hosts(hosts: Sequence[PartyHost]) -> Rows:
    """List what left opened parties, in order."""
    return [
        {
            "party": host.config.id,
            "round": one.release.round,
            "what": one.release.what,
            "shape": _shape(None if one.stays else one.release.shape),
            "bytes": _recorded(one.bytes),
            "before packing": one.before_packing,
            "seen": seen_by(
                REPORTS if one.stays else one.release.verb,
                masked=one.release.masked and not one.stays,
                min_summed=min_summed_at(host),
            ),
            "masked": one.release.masked,
            "mechanism": one.release.name,
            "step": one.release.step.split(":")[-1],
        }
        for host in hosts
        for one in disclosed_by(host)
    ]


def grouped(hosts: Sequence[PartyHost]) -> Rows:
    """Group disclosures of one kind into one row: rounds, number, and total bytes."""
    return [
        {
            "party": host.config.id,
            "what": left.what,
            "rounds": _range(left.rounds),
            "times": left.times,
            "bytes": _recorded(left.bytes),
            "before packing": left.before_packing,
            "mechanism": left.mechanism,
        }
        for host in hosts
        for left in left_of_host(host).values()
    ]


def _recorded(number: int | None) -> int | str:
    return NOT_RECORDED if number is None else number


def readers(rows: Rows) -> list[str]:
    """Describe who sees which disclosures, one line for each kind of reader."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row["seen"], {})[row["what"]] = None
    return [f"seen {seen}: {', '.join(things)}" for seen, things in found.items()]


def _range(rounds: Sequence[int]) -> str:
    """Format the first and the last of some rounds.

    >>> _range([1, 2, 3]), _range([0])
    ('1-3', '0')
    """
    return f"{min(rounds)}-{max(rounds)}" if len(set(rounds)) > 1 else str(rounds[0])


def _shape(shape: tuple[int, ...] | None) -> str:
    """Format the shape of an array that left, 1 for a number; empty if nothing left."""
    return "" if shape is None else "x".join(map(str, shape)) or "1"


def privacy_totals(run: Run, delta: float) -> Rows:
    """Return the real epsilon of everything that left each party, for a word, a document, a user."""
    return [row for host in hosts_of(run) for row in totals_of_host(host, delta)]


def privacy_rows(run: Run, delta: float) -> Rows:
    """List claimed and real epsilon for each kind of release; a derived one has the cost of its sources."""
    return privacy_of_hosts(hosts_of(run), delta)


def privacy_of_hosts(hosts: Sequence[PartyHost], delta: float) -> Rows:
    """List claimed and real epsilon for each kind of release of opened parties."""
    shown = (
        "party",
        "what",
        "mechanism",
        "masked",
        "unit",
        "adjacency",
        "releases",
        "arrays",
        "bytes",
        "before packing",
        "claimed epsilon",
        "real epsilon",
        "delta",
        "remarks",
    )
    rows = [row for host in hosts for row in thing_rows(host, delta)]
    return [{name: row[name] for name in shown} | {"bytes": _recorded(row["bytes"])} for row in rows]


def thing_rows(host: PartyHost, delta: float) -> Rows:
    """List what left one party in its run, with the verb, and the reason if a guarantee is vacuous.

    The cost is that of all runs with the party's home, because a ledger adds up over runs.
    """
    releases, left = host.ledger.releases(), left_of_host(host)
    known = [release.params.get("words") for release in releases]
    words = max((number for number in known if isinstance(number, int)), default=0) or None
    units = populations(host.parts["train"]) if has_documents(host) else {}
    return [
        {
            "party": host.config.id,
            "what": row.what,
            "verb": own.verb,
            "masked": own.masked,
            "bytes": own.bytes,
            "before packing": own.before_packing,
            "mechanism": row.mechanism,
            "unit": row.unit.value,
            "adjacency": row.adjacency.value,
            "releases": own.times,
            "arrays": own.arrays,
            "claimed epsilon": claimed_epsilon(row.claimed),
            "real epsilon": epsilon(row.real.epsilon),
            "delta": row.real.delta,
            "vacuous": vacuous,
            "remarks": "; ".join(filter(None, (hidden, _as(row.sources), *row.real.assumptions, vacuous, row.finding))),
        }
        for row, pure in zip(host.ledger.table(delta), host.ledger.table(0.0), strict=True)
        for own in [left.get((row.what, row.mechanism, row.claimed))]
        if own is not None
        for hidden in [_hidden(own, host)]
        for population in [units.get(row.unit) if math.isinf(pure.real.epsilon) else None]  # else delta does not matter
        for vacuous in [vacuity_or_none(row.real, row.adjacency, population, words)]
    ]


def _hidden(left: Left, host: PartyHost) -> str:
    """Say that a thing reached the server only in totals, or not at all; empty if the server could read it."""
    if not left.masked and left.verb != "relay":
        return ""
    return seen_by(left.verb, masked=left.masked, min_summed=min_summed_at(host))


def _as(sources: Sequence[str]) -> str:
    return f"as its source: {', '.join(sources)}" if sources else ""


def evaluation(model: Topics, documents: Corpus) -> dict[str, float]:
    """Compute all scores of a model on documents."""
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
    """Return a table with the id and topic shares of each document."""
    import polars as pl

    shares = pl.DataFrame(model.transform(corpus, n_jobs=n_jobs), schema=list(model.get_feature_names_out()))
    return corpus.table.select("id").hstack(shares)


def write_table(table: pl.DataFrame, path: Path) -> None:
    """Write Parquet, CSV or JSONL, depending on the suffix."""
    if path.suffix == ".parquet":
        table.write_parquet(path)
    elif path.suffix == ".csv":
        write_csv(table, path)
    elif path.suffix == ".jsonl":
        table.write_ndjson(path)
    else:
        raise InputError(f"{path}: name the output .parquet, .csv or .jsonl")
