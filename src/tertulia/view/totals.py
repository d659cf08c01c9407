"""The total privacy cost of everything that left a party: for a word, a document and, where users are known, a user.

Replacing a document of L words by another of the same length changes L words at once. A guarantee for words is
therefore weaker for documents, by the length of a document, and both are shown first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tertulia.corpus import Corpus
from tertulia.federation.party.host import PartyHost, parts_of
from tertulia.privacy import accounting
from tertulia.privacy.accounting import Guarantee
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.ledger import Release
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.policy import Policy

Rows = list[dict[str, Any]]
Spent = Callable[[Unit, Bounds], Guarantee]  # cost when one unit is replaced by another


class Lengths(NamedTuple):
    """Numbers of words in a party's training documents."""

    average: int  # rounded up
    longest: int

    @classmethod
    def of(cls, corpus: Corpus, left_out: float) -> Lengths:
        """Count all words; those outside the word list count too, because they are reported as unknown."""
        lengths = parts_of(corpus, left_out)["train"].lengths
        return cls(math.ceil(lengths.mean()), int(lengths.max())) if len(lengths) else cls(0, 0)


def totals_of_host(host: PartyHost, delta: float) -> Rows:
    """Return the total cost in a party's ledger, for the party's owner."""

    def spent(unit: Unit, bounds: Bounds) -> Guarantee:
        # a user may have had longer documents before
        tokens = bounds.tokens_per_document if unit is Unit.DOCUMENT else None
        return host.ledger.cost(unit, Adjacency.SUBSTITUTE, delta, bounds=host.policy.bounds, tokens=tokens)

    scope = "in this run" if host.config.home is None else "in all runs with this home"
    rows = totals(host.ledger.releases(), spent, _lengths_or_none(host), host.policy)
    return [{"party": host.config.id, **row, "holds": scope} for row in rows]


def totals_of_plan(releases: Sequence[Release], lengths: Lengths, policy: Policy, delta: float) -> Rows:
    """Return the cost of a planned run, taken by itself."""

    def spent(unit: Unit, bounds: Bounds) -> Guarantee:
        return accounting.cost(releases, unit, Adjacency.SUBSTITUTE, delta, bounds)

    rows = totals(releases, spent, lengths, policy)
    return [{**row, "remarks": in_future(row["remarks"]), "holds": "in this run"} for row in rows]


def _lengths_or_none(host: PartyHost) -> Lengths | None:
    stored = host.directory / "corpus"
    if not (stored / "corpus.json").exists():
        return None
    return Lengths.of(Corpus.load(stored), host.config.heldout + host.config.validation)


def has_documents(host: PartyHost) -> bool:
    """Whether a party still has the documents of this run; it has not after `tertulia forget`."""
    return (host.directory / "corpus" / "corpus.json").exists()


def totals(releases: Sequence[Release], spent: Spent, lengths: Lengths | None, policy: Policy) -> Rows:
    """Return one row each for a word, an average document, the longest document, and a user if users are known."""
    rows = [_row("a word", Unit.TOKEN, 1, spent(Unit.TOKEN, Bounds()))]
    sizes = {} if lengths is None else {"an average document": lengths.average, "the longest document": lengths.longest}
    for name, size in sizes.items():
        rows.append(_row(name, Unit.DOCUMENT, size, spent(Unit.DOCUMENT, Bounds(size))))
    documents = policy.max_documents_per_user
    if documents is not None or any(release.unit is Unit.USER for release in releases):
        longest = None if lengths is None else lengths.longest
        rows.append(_row("a user", Unit.USER, None, spent(Unit.USER, Bounds(longest, documents))))
    return rows


def _row(of: str, unit: Unit, words: int | None, cost: Guarantee) -> dict[str, Any]:
    size = f" ({words} words)" if unit is Unit.DOCUMENT else ""
    known = f"a document holds at most {words} tokens"  # in `of`
    return {
        "of": f"{of}{size}",
        "unit": unit.value,
        "words": words,
        "real epsilon": epsilon(cost.epsilon),
        "delta": cost.delta,
        "remarks": "; ".join(a for a in cost.assumptions if a != known),
    }


def in_future(remarks: str) -> str:
    """Rewrite remarks on past releases for planned ones.

    >>> in_future("topic sizes left in the clear")
    'topic sizes would leave in the clear'
    """
    return remarks.replace(" left in the clear", " would leave in the clear")


def epsilon_and_delta(real: str, delta: float) -> str:
    """Format an epsilon together with its delta.

    >>> epsilon_and_delta("8", 1e-6), epsilon_and_delta("8", 0.0), epsilon_and_delta("infinite (non-private)", 0.0)
    ('epsilon 8, delta 1e-06', 'epsilon 8, delta 0 (pure)', 'no bound')
    """
    if real.startswith("infinite"):
        return "no bound"
    return f"epsilon {real}, delta {delta:g}{'' if delta else ' (pure)'}"


def epsilon(value: float) -> str:
    """Format an epsilon for people.

    >>> epsilon(8.0), epsilon(float("inf"))
    ('8', 'infinite (non-private)')
    """
    return "infinite (non-private)" if math.isinf(value) else f"{value:.4g}"
