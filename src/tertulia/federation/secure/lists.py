"""The protocol's numbers and labels: thresholds, what identifies a masked sum, and the list of its survivors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tertulia.errors import ConfigError, FormatError
from tertulia.federation.secure.masks import SEED_BYTES
from tertulia.federation.types import PartyId, Place

FEWEST_MEMBERS = 3
MOST_MEMBERS = 255  # points of GF(256)


def colluding(members: int) -> int:
    """Return the number of members that may collude with the server, the operator's own party included.

    >>> [colluding(n) for n in (3, 4, 5, 10, 50)]
    [1, 1, 1, 3, 16]
    """
    return max(1, (members - 1) // 3)


def threshold(members: int) -> int:
    """Return the number of members that must sign a list, and whose shares recover a seed.

    Two lists with that many signatures each have more than `colluding` signers in common, so an honest member would
    have signed both, which it does not do.

    >>> [threshold(n) for n in (3, 4, 5, 10, 50)]
    [3, 3, 4, 7, 34]
    """
    return (members + colluding(members)) // 2 + 1


def honest_survivors(members: int) -> int:
    """Return the fewest members of a list that do not collude with the server.

    >>> [honest_survivors(n) for n in (3, 4, 5, 10, 50)]
    [2, 2, 3, 4, 18]
    """
    return threshold(members) - colluding(members)


def check_members(members: int) -> None:
    """Raise `ConfigError` unless a run with this number of members can have secure sums."""
    if members < FEWEST_MEMBERS:
        raise ConfigError(
            f"secure = true needs {FEWEST_MEMBERS} members or more, not {members}: of two, each would read the "
            "other's numbers off the total. Invite a third, or set secure = false"
        )
    if members > MOST_MEMBERS:
        raise ConfigError(f"secure = true takes at most {MOST_MEMBERS} members, and there are {members}")


def digest(*parts: bytes | str) -> bytes:
    """Hash several parts; each part's length is hashed, too, so that no two sequences have the same hash by design."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "little"))
        hashed.update(data)
    return hashed.digest()


@dataclass(frozen=True)
class Label:
    """The identity of one exchange: a mask is made for a label, and never used for another."""

    keys: str  # the hash of all members' run keys, in hex; it stands for run, plan and members
    place: Place
    body: str  # the hash of the question and of the widths of its rings, in hex
    attempt: int

    def to_bytes(self) -> bytes:
        """Hash the label."""
        return digest("tertulia label", json.dumps([self.keys, *self.place, self.body, self.attempt]))


@dataclass(frozen=True)
class SumList:
    """The survivors of a masked sum, each with the digest of its masked reply."""

    label: Label
    survivors: dict[PartyId, str]  # digests, in hex

    def to_bytes(self) -> bytes:
        """Hash the list: this is what members sign."""
        entries = json.dumps(sorted(self.survivors.items()))
        return digest("tertulia list", self.label.to_bytes(), entries)


def body_hash(question_hash: str, widths: tuple[int, ...]) -> str:
    """Hash a question and its widths."""
    return digest("tertulia body", question_hash, json.dumps(widths)).hex()


def least_survivors(
    members: Sequence[PartyId], min_summed: int, groups: Sequence[Sequence[PartyId]], survivors: Collection[PartyId]
) -> int:
    """Return the fewest survivors of a list: of all members, or of a group that the plan names.

    Groups are disjoint, so that no two of their totals differ by single parties.
    """
    if survivors and any(set(survivors) <= set(group) for group in groups):
        return min_summed
    return max(threshold(len(members)), min_summed)


def check_list(
    found: SumList, members: Sequence[PartyId], min_summed: int, groups: Sequence[Sequence[PartyId]] = ()
) -> None:
    """Raise `FormatError` unless a list names enough members, and nobody else."""
    needed = least_survivors(members, min_summed, groups, found.survivors)
    if not set(found.survivors) <= set(members):
        raise FormatError("a list names a party that is no member")
    if len(found.survivors) < needed:
        raise FormatError(f"a list names {len(found.survivors)} of {len(members)} members, and {needed} are needed")


def check_groups(groups: Sequence[Sequence[PartyId]], members: Sequence[PartyId], min_summed: int) -> None:
    """Raise `ConfigError` unless groups are disjoint, and each of them and the rest has none or enough parties."""
    named = [party for group in groups for party in group]
    rest = [party for party in members if party not in named]
    if len(set(named)) < len(named) or not set(named) <= set(members):
        raise ConfigError("groups of a masked sum must be disjoint, and of members only")
    for group in (*groups, rest):
        if 0 < len(group) < min_summed:
            raise ConfigError(
                f"secure = true reveals totals over at least {min_summed} parties, and a group, or the parties in no "
                f"group, has {len(group)} ({', '.join(group)}): make groups larger"
            )


def box_bytes(members: int) -> int:
    """Return the length of a box: shares of all seeds, a digest, one byte, and the tag."""
    return members * SEED_BYTES + 32 + 1 + 16
