"""How far one unit moves what a reader sees: totals of several parties, single replies, and replies of all members.

Under secure sums parties may share their noise: each adds variance sigma² / shares, and the release is charged for the
total, which has all of it (`shares` in a release's parameters). Somebody who reads a single reply sees a share only.
Gaussian noise of a share is as weak as `shares` releases with all of the noise: the squares of shift / deviation add.

**A user may have documents at several members of a run.** Then each of these members' replies depends on the user, and
their costs compose. The worst case is a user with documents at all n members, who is in n independent replies. Each
reply has a share of the noise, so the cost is that of n * shares Gaussian releases with all of it. That holds for a
reader of all single replies, and no less for the server: a total is computed from them. It cannot be improved for
totals: n replies without noise move a total by n, whose deviation is sigma * sqrt(n / shares) if nobody colludes. What
members that collude with the server know of a user is known; their replies tell nothing about the others' documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tertulia.privacy.mechanisms import EventData
from tertulia.privacy.sampled import sampled_event, sampled_or_none

if TYPE_CHECKING:
    from tertulia.privacy.releases import Release

_ADD_UP = ("GaussianDpEvent", "ZCDpEvent")  # their costs are sums of squares, so that variances can be shared
AS_HERE = "every other member adds this noise, and has no more documents of a user than this party has"
NOT_RECORDED = "charged before ledgers recorded at how many members a user may have documents"


@dataclass(frozen=True)
class Reach:
    """What a reader sees."""

    singly: bool = False  # single replies, and not only totals
    everywhere: bool = False  # the replies of all members with documents of one user, and not only this party's


AS_CHARGED = Reach()


class Spread(NamedTuple):
    """An event as a reader sees it, and how often it happens more than it was charged."""

    event: EventData
    copies: int = 1
    why_not: str = ""  # not empty: no bound is known


def shares_of(release: Release) -> int:
    """Return the number of parties that add the noise of a release together; 1: this party adds all of it."""
    shares = release.params.get("shares", 1)
    return shares if isinstance(shares, int) and shares > 1 else 1


def spread_of(release: Release, event: EventData, reach: Reach) -> Spread:
    """Convert a release's event to what a reader sees. Shares of noise add up under masks only."""
    members = release.user_at if reach.everywhere else 1
    if members is None:
        return Spread(event, why_not=NOT_RECORDED)
    shares = shares_of(release)
    if shares == 1 or (release.masked and not reach.singly and members == 1):
        return Spread(event, members)
    if event["type"] in _ADD_UP:
        return Spread(event, members * shares)
    if (sampled := sampled_or_none(event)) is not None:
        return Spread(sampled_event(sampled.rate, sampled.noise_multiplier / math.sqrt(shares)), members)
    return Spread(event, why_not="nothing is known about a share of such noise")
