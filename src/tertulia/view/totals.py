"""What everything that left a party costs together: for one word, for a document, and where users are known for a user.

A document of L words that is replaced by another of the same length is L words at once: whoever reads a guarantee for
words as one for documents is off by the length of a document, so both stand first.
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
Spent = Callable[[Unit, Bounds], Guarantee]  # by replacing one unit with another


class Lengths(NamedTuple):
    """How many words a party's training documents have."""

    average: int  # rounded up
    longest: int

    @classmethod
    def of(cls, corpus: Corpus, left_out: float) -> Lengths:
        """Count all words: those off a list are reported, too, as unknown ones."""
        lengths = parts_of(corpus, left_out)["train"].lengths
        return cls(math.ceil(lengths.mean()), int(lengths.max())) if len(lengths) else cls(0, 0)


def totals_of_host(host: PartyHost, delta: float) -> Rows:
    """What a party's ledger adds up to, for the party's owner."""

    def spent(unit: Unit, bounds: Bounds) -> Guarantee:
        return host.ledger.cost(unit, Adjacency.SUBSTITUTE, delta, bounds=bounds)

    scope = "in this run" if host.config.home is None else "in all runs with this home"
    rows = totals(host.ledger.releases(), spent, _lengths_or_none(host), host.policy)
    return [{"party": host.config.id, **row, "holds": scope} for row in rows]


def totals_of_plan(releases: Sequence[Release], lengths: Lengths, policy: Policy, delta: float) -> Rows:
    """What a run would add to a party's ledger, taken by itself."""

    def spent(unit: Unit, bounds: Bounds) -> Guarantee:
        return accounting.cost(releases, unit, Adjacency.SUBSTITUTE, delta, bounds)

    return [{**row, "holds": "in this run"} for row in totals(releases, spent, lengths, policy)]


def _lengths_or_none(host: PartyHost) -> Lengths | None:
    stored = host.directory / "corpus"
    if not (stored / "corpus.json").exists():
        return None
    return Lengths.of(Corpus.load(stored), host.config.heldout + host.config.validation)


def has_documents(host: PartyHost) -> bool:
    """Whether a party's documents can be looked at: those of a run that it has forgotten cannot."""
    return host.config.source is not None or (host.directory / "corpus" / "corpus.json").exists()


def totals(releases: Sequence[Release], spent: Spent, lengths: Lengths | None, policy: Policy) -> Rows:
    """One row each for a word, an average document, the longest one, and a user if there are such."""
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
        "remarks": "; ".join(a for a in cost.assumptions if a != known),
    }


def epsilon(value: float) -> str:
    """Write epsilon for people.

    >>> epsilon(8.0), epsilon(float("inf"))
    ('8', 'infinite (non-private)')
    """
    return "infinite (non-private)" if math.isinf(value) else f"{value:.4g}"
