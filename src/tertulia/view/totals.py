"""The total privacy cost of everything that left a party: for a word, a document and, where users are known, a user.

Replacing a document of L words by another of the same length changes L words at once. A guarantee for words is
therefore weaker for documents, by the length of a document, and both are shown first. Where a guarantee holds for
documents that are there or not, which is the usual statement, these have rows of their own.

Each row states the claim for its unit, the real epsilon against the server, and the real epsilon against a reader of
this party's single replies. The two differ if parties share their noise under secure sums (`privacy.reach`).

A document counts as being at one party. Unless the plan says the same of users, rows for users follow that count what
all members release, for a user with documents at each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from tertulia.corpus import Corpus
from tertulia.federation.party.document_limits import parts_of
from tertulia.federation.party.host import PartyHost
from tertulia.federation.party.reports import users_of
from tertulia.operations.audit.results import configuration_of, load_or_none, place_of
from tertulia.privacy import accounting
from tertulia.privacy.accounting import PURE, Guarantee
from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.ledger import Release
from tertulia.privacy.mechanisms import Adjacency, Claim, Unit
from tertulia.privacy.policy import Policy
from tertulia.privacy.reach import Reach, shares_of
from tertulia.runs.directory import Run
from tertulia.runs.driver import settings_of

Rows = list[dict[str, Any]]
PRESENCE = Adjacency.ADD_REMOVE.value
DOCUMENTS_AT_ONE = "Each document counts as being at one party only."
USERS_ANYWHERE = (
    "A user may have documents at several parties (federation.users = anywhere). Then epsilon adds up: rows 'at all {} "
    "parties' are for a user with documents at each, if all members add this noise."
)
USERS_AT_ONE = (
    "By the plan no user has documents at two parties (federation.users = one_party). So the largest epsilon of any "
    "member holds for a user, and nothing adds up over members. Nobody checks this."
)
NOT_AUDITED = "not audited"
STRONG, WEAK = 3.0, 10.0  # largest epsilon at which a document can be denied, and a word to some degree


class Spent(Protocol):
    """Computes what all releases cost one unit."""

    def __call__(self, unit: Unit, adjacency: Adjacency, bounds: Bounds, reach: Reach) -> Guarantee:
        """Return the guarantee."""


class Asked(NamedTuple):
    """A row of totals: the unit, and how two data sets differ in it."""

    of: str
    unit: Unit
    bounds: Bounds = Bounds()
    words: int | None = None
    adjacency: Adjacency = Adjacency.SUBSTITUTE
    members: int = 1  # at which the unit has documents

    @property
    def presence(self) -> bool:
        """Whether the unit is there or not."""
        return self.adjacency is Adjacency.ADD_REMOVE

    @property
    def reach(self) -> Reach:
        """The replies that depend on the unit."""
        return Reach(everywhere=self.members > 1)


class Lengths(NamedTuple):
    """Numbers of words in a party's training documents, and the number of its units."""

    average: int  # rounded up
    longest: int
    units: Mapping[Unit, int] = MappingProxyType({})

    @classmethod
    def of(cls, corpus: Corpus, left_out: float, *, hides_words: bool = False) -> Lengths:
        """Count all words; those outside the word list count too, because they are reported as unknown."""
        train = parts_of(corpus, left_out, hides_words=hides_words)["train"]
        if not train.n_documents:
            return cls(0, 0)
        return cls(math.ceil(train.lengths.mean()), int(train.lengths.max()), populations(train))


def populations(train: Corpus) -> dict[Unit, int]:
    """Count a party's units; delta must be far below one divided by their number. Who is not named counts as a user."""
    names = users_of(train)
    users = len({name for name in names if name is not None}) + names.count(None)
    return {Unit.TOKEN: train.n_tokens, Unit.DOCUMENT: train.n_documents, Unit.USER: users}


def totals_of_host(host: PartyHost, delta: float) -> Rows:
    """Return the total cost in a party's ledger, for the party's owner."""

    def spent(unit: Unit, adjacency: Adjacency, bounds: Bounds, reach: Reach) -> Guarantee:
        # a user may have had longer documents before
        tokens = bounds.tokens_per_document if unit is Unit.DOCUMENT else None
        return host.ledger.cost(unit, adjacency, delta, bounds=host.policy.bounds, tokens=tokens, reach=reach)

    scope = "in this run" if host.config.home is None else "in all runs with this home"
    rows = totals(host.ledger.releases(), spent, _lengths_or_none(host), host.policy)
    audited = _audited(host)
    bounds = [audited.get((row["unit"], row["adjacency"])) for row in rows]
    shown = [{} if bound is None else {"audited lower bound": epsilon(bound)} for bound in bounds]
    return [{"party": host.config.id, **row, **own, "holds": scope} for row, own in zip(rows, shown, strict=True)]


def _audited(host: PartyHost) -> dict[tuple[str, str], float]:
    """Return the lower bounds that an audit of the very settings of a run has found, by unit and adjacency."""
    run = host.directory.parents[1]
    report = load_or_none(place_of(run)) if (run / "run.json").exists() else None
    if report is None or report.configuration != configuration_of(settings_of(Run.open(run))):
        return {}
    found: dict[tuple[str, str], float] = {}
    for one in report.findings:
        if one.part != "mechanism":  # of a single use
            found[one.unit, one.adjacency] = max(one.lower_bound, found.get((one.unit, one.adjacency), 0.0))
    everything = found.pop(("any", "any"), 0.0)
    return {row: max(bound, everything) for row, bound in found.items()}


def spent_by_plan(releases: Sequence[Release], delta: float) -> Spent:
    """Return the function that computes the cost of planned releases."""

    def spent(unit: Unit, adjacency: Adjacency, bounds: Bounds, reach: Reach) -> Guarantee:
        return accounting.cost(releases, unit, adjacency, delta, bounds, reach=reach)

    return spent


def totals_of_plan(releases: Sequence[Release], lengths: Lengths, policy: Policy, delta: float) -> Rows:
    """Return the cost of a planned run, taken by itself."""
    rows = totals(releases, spent_by_plan(releases, delta), lengths, policy)
    return [{**row, "remarks": in_future(row["remarks"]), "holds": "in this run"} for row in rows]


def _lengths_or_none(host: PartyHost) -> Lengths | None:
    stored = host.directory / "corpus"
    if not (stored / "corpus.json").exists():
        return None
    config = host.config
    return Lengths.of(Corpus.load(stored), config.heldout + config.validation, hides_words=config.hides_words)


def remarks_on_places(totals: Rows, members: int) -> list[str]:
    """Say at how many of a run's members documents and users count, where noise protects them."""
    bounded = {row["unit"] for row in totals if not row["real epsilon"].startswith("infinite")}
    if members == 1 or not bounded & {"document", "user"}:
        return []
    of_users = [USERS_ANYWHERE.format(members) if any(row["members"] > 1 for row in totals) else USERS_AT_ONE]
    return [DOCUMENTS_AT_ONE, *(of_users if any(row["unit"] == "user" for row in totals) else [])]


def has_documents(host: PartyHost) -> bool:
    """Whether a party still has the documents of this run; it has not after `tertulia forget`."""
    return (host.directory / "corpus" / "corpus.json").exists()


def totals(releases: Sequence[Release], spent: Spent, lengths: Lengths | None, policy: Policy) -> Rows:
    """Return one row each for a word, an average document, the longest document, and a user if users are known.

    Documents and users that are there or not have a row where that cost is finite. Users have rows of all members, too,
    unless they have documents at one party only.
    """
    shared = any(shares_of(release) > 1 for release in releases)
    charging = any(release.charges for release in releases)
    rows = []
    for one in _asked(releases, lengths, policy):
        here = spent(one.unit, one.adjacency, one.bounds, Reach())
        if one.presence and (math.isinf(here.epsilon) or not charging):
            continue
        real = here if one.members == 1 else spent(one.unit, one.adjacency, one.bounds, one.reach)
        singly = spent(one.unit, one.adjacency, one.bounds, replace(one.reach, singly=True)) if shared else real
        rows.append(_row(one, _claim_or_none(releases, one), real, singly, lengths))
    return rows


def _asked(releases: Sequence[Release], lengths: Lengths | None, policy: Policy) -> Iterator[Asked]:
    yield Asked("a word", Unit.TOKEN, words=1)
    sizes = {} if lengths is None else {"an average document": lengths.average, "the longest document": lengths.longest}
    for name, size in sizes.items():
        yield Asked(f"{name} ({size} words)", Unit.DOCUMENT, Bounds(size), size)
    longest = None if lengths is None else lengths.longest
    yield Asked("a document, there or not", Unit.DOCUMENT, Bounds(longest), adjacency=Adjacency.ADD_REMOVE)
    documents = policy.max_documents_per_user
    if documents is not None or any(release.unit is Unit.USER for release in releases):
        bounds, members = Bounds(longest, documents), members_of(releases)
        for name, how in (("a user", Adjacency.SUBSTITUTE), ("a user, there or not", Adjacency.ADD_REMOVE)):
            yield Asked(name, Unit.USER, bounds, adjacency=how)
            if members > 1:
                yield Asked(f"{name}, at all {members} parties", Unit.USER, bounds, None, how, members)


def members_of(releases: Sequence[Release]) -> int:
    """Return at how many members one user may have documents, at most."""
    return max((release.user_at or 1 for release in releases if release.charges), default=1)


def _row(
    asked: Asked, claim: Claim | None, real: Guarantee, singly: Guarantee, lengths: Lengths | None
) -> dict[str, Any]:
    known = f"a document holds at most {asked.words} tokens"  # in `of`
    population = None if lengths is None or real.accountant == PURE else lengths.units.get(asked.unit)
    vacuous = accounting.vacuity_or_none(real, asked.adjacency, population)
    return {
        "of": asked.of,
        "unit": asked.unit.value,
        "adjacency": asked.adjacency.value,
        "words": asked.words,
        "members": asked.members,
        "claimed epsilon": claimed_epsilon(claim),
        "real epsilon": epsilon(real.epsilon),
        "single reply epsilon": epsilon(singly.epsilon),
        "audited lower bound": NOT_AUDITED,
        "level": level_of_epsilon(real.epsilon),
        "delta": real.delta,
        "remarks": "; ".join([*(a for a in real.assumptions if a != known), *([vacuous] if vacuous else [])]),
    }


def _claim_or_none(releases: Sequence[Release], asked: Asked) -> Claim | None:
    """Return the largest claim for a unit; None if nothing was claimed for it."""
    claims = [
        release.claimed
        for release in releases
        if release.claimed is not None
        and release.unit is asked.unit
        and asked.members == 1
        and (release.adjacency is Adjacency.ADD_REMOVE) == asked.presence
    ]
    return max(claims, key=lambda claim: claim.epsilon, default=None)


def is_shared(row: Mapping[str, Any]) -> bool:
    """Tell whether a reader of single replies learns more than a total of the row says."""
    return bool(row["single reply epsilon"] != row["real epsilon"])


def level_of_epsilon(value: float) -> str:
    """Return the level of an epsilon as it is shown, by which pages colour it: "good", "weak" or "bad".

    Accountants round up on a grid, so that noise made for epsilon 3 costs a little more than 3.

    >>> level_of_epsilon(3.0001), level_of_epsilon(8.0), level_of_epsilon(687.5)
    ('good', 'weak', 'bad')
    """
    shown = float(f"{value:.4g}")
    return "good" if shown <= STRONG else "weak" if shown <= WEAK else "bad"


def claimed_epsilon(claim: Claim | None) -> str:
    """Format a claimed epsilon with its source."""
    return f"{claim.epsilon:g} ({claim.source}, delta {claim.delta:g})" if claim else "none"


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
