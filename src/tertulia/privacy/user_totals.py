"""Totals of users: the reports of one user's documents add up, over all runs.

A charge for reports is made once for all documents, because reports of one say nothing about another. Reports of all
documents of one user do say something about that user. So the ledger counts by user (`reported_documents`), and a total
for users is that of the user who was charged most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tertulia.privacy.adjacency import Bounds
from tertulia.privacy.assumptions import AT_ONE_PARTY
from tertulia.privacy.mechanisms import Adjacency, Unit
from tertulia.privacy.reach import AS_HERE, Reach

if TYPE_CHECKING:
    from tertulia.privacy.releases import Release

NO_USERS = "documents name no user: each counts as its user's only one"
NOT_COUNTED = "charged before ledgers counted users' documents, of which some were not reported again since"
_MOST_COMPARED = 16  # users; beyond it one who has the most of everything stands for them all

Kinds = Counter[tuple[str, Adjacency, int]]  # how often an event hits a group, under an adjacency
Covered = tuple[Mapping[bytes, int], Kinds]  # documents of each user, and what one document costs


def assumed(releases: Sequence[Release], unit: Unit, reach: Reach) -> list[str]:
    """Return all that releases assume; what they assume of users concerns totals for users only."""
    found = dict.fromkeys(a for r in releases for a in r.assumptions if a != AT_ONE_PARTY or _at_one_party(r, unit))
    several = reach.everywhere and any(r.user_at is not None and r.user_at > 1 for r in releases)
    return [*found, *([AS_HERE] if several else [])]


def _at_one_party(release: Release, unit: Unit) -> bool:
    return unit is Unit.USER and release.user_at == 1


def users_or_none(release: Release, unit: Unit) -> Mapping[bytes, int] | None:
    """Count the documents of each user that a charge covers, where a total for users is asked for; else None."""
    return None if release.charged is None or unit is not Unit.USER else release.charged.users


def assumptions(release: Release, unit: Unit) -> tuple[str, ...]:
    """Return what is assumed when documents name no user."""
    if unit is not Unit.USER or release.unit is not Unit.USER or release.charged is None:
        return ()
    return (NO_USERS,) if release.unnamed_users or release.charged.alone else ()


def documents_of_user(release: Release, unit: Unit, bounds: Bounds) -> int | None:
    """Count one user's documents in a charge that takes each document for a user; None: nobody counted."""
    if unit is not Unit.USER or release.unit is not Unit.USER or not release.local:
        return 1
    if release.charged is None:
        return bounds.documents_per_user or release.documents_of_user
    return release.documents_of_user


def why_not(release: Release, unit: Unit) -> str:
    """Say why a charge cannot be added up by user; empty if it can, or need not."""
    charged = release.charged
    if charged is None or users_or_none(release, unit) is None:
        return "" if documents_of_user(release, unit, Bounds()) else NOT_COUNTED
    if charged.unknown:
        return NOT_COUNTED
    return "charged per document, and documents name no user" if charged.alone and release.unit is not Unit.USER else ""


def heaviest(covered: Sequence[Covered]) -> list[tuple[int, Kinds]]:
    """Find the users who may have spent most: how many documents each had reported, and what these cost.

    >>> token = Counter({("event", Adjacency.SUBSTITUTE, 1): 5})
    >>> [(n, *kinds.values()) for n, kinds in heaviest([({b"ann": 2, b"ben": 1}, token), ({b"ann": 1}, token)])]
    [(3, 15)]
    """
    alike: dict[frozenset[tuple[tuple[str, Adjacency, int], int]], Counter[bytes]] = {}
    for users, kinds in covered:
        alike.setdefault(frozenset(kinds.items()), Counter()).update(users)
    counts, costs = list(alike.values()), [Counter(dict(kinds)) for kinds in alike]
    profiles = {tuple(count.get(user, 0) for count in counts) for user in set().union(*counts)}
    worst = [one for one in profiles if not any(other != one and _exceeds(other, one) for other in _largest(profiles))]
    if len(worst) > _MOST_COMPARED:
        worst = [tuple(max(column) for column in zip(*profiles, strict=True))]
    return [(sum(profile), _total(profile, costs)) for profile in worst]


def _largest(profiles: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return some profiles that exceed most others: comparing all with all would take long."""
    return sorted(profiles, key=sum, reverse=True)[:100]


def _exceeds(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True))


def _total(profile: tuple[int, ...], costs: Sequence[Kinds]) -> Kinds:
    return sum((repeated(kinds, documents) for documents, kinds in zip(profile, costs, strict=True)), Kinds())


def repeated(kinds: Kinds, times: int) -> Kinds:
    """Multiply all counts by `times`."""
    return Counter({kind: times * count for kind, count in kinds.items()})
