"""Measures of a run's history: the rounds in which each party took part, and the bytes that were sent.

A party takes part in a round if it answers all questions of that round. A question that only scores the model does not
count if the party's policy refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Ranges = tuple[tuple[int, int], ...]
MANY = 0.1  # share of missed rounds above which users get a warning
_NAMED = 5  # parties that missed rounds, by their names
KNOWS_LESS = "the model knows less of a party that missed more than a tenth of the rounds"
_LISTED = 4  # ranges that a text lists; beyond that it gives only the number of rounds


@dataclass(frozen=True)
class Participation:
    """The rounds of one party, as ranges with both ends, and the number of rounds of the run.

    >>> print(Participation(((1, 22), (30, 30)), of=121))
    rounds 1-22, 30 of 121
    """

    rounds: Ranges
    of: int

    @property
    def count(self) -> int:
        """The number of rounds in which the party took part."""
        return sum(last - first + 1 for first, last in self.rounds)

    @property
    def is_complete(self) -> bool:
        """Whether the party took part in every round."""
        return self.count == self.of

    @property
    def missed_many(self) -> bool:
        """Whether the party missed more than a tenth of the rounds."""
        return self.of - self.count > MANY * self.of

    def missed(self) -> list[int]:
        """List the rounds in which the party did not take part."""
        here = {number for first, last in self.rounds for number in range(first, last + 1)}
        return [number for number in range(1, self.of + 1) if number not in here]

    def __str__(self) -> str:
        if not self.rounds:
            return "never"
        if self.is_complete:
            return f"all {self.of} rounds" if self.of > 1 else "the only round"
        if len(self.rounds) > _LISTED:
            return f"{self.count} of {self.of} rounds"
        ranges = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in self.rounds)
        return f"round{'s' * (self.count > 1)} {ranges} of {self.of}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for a model's provenance."""
        return {"rounds": [list(pair) for pair in self.rounds], "of": self.of}


def participation(history: Sequence[Mapping[str, Any]], members: Sequence[str]) -> dict[str, Participation]:
    """Find the rounds of each of these parties in a run's history (`model.history`).

    The key `took_part` is in the first round, and in each round whose parties differ from the round before. A history
    of an earlier version lacks it: the result is empty.

    >>> participation([{"took_part": ["north", "south"]}, {}, {"took_part": ["south"]}], ["north", "south"])["north"]
    Participation(rounds=((1, 2),), of=3)
    """
    if not history or "took_part" not in history[0]:
        return {}
    found: dict[str, list[tuple[int, int]]] = {member: [] for member in members}
    changes = [(number, facts["took_part"]) for number, facts in enumerate(history, 1) if "took_part" in facts]
    ends = [number - 1 for number, _ in changes[1:]] + [len(history)]
    for (first, here), last in zip(changes, ends, strict=True):
        for member in found.keys() & set(here):
            ranges = found[member]
            joined = bool(ranges) and ranges[-1][1] == first - 1
            ranges[-1 if joined else len(ranges) :] = [(ranges[-1][0] if joined else first, last)]
    return {member: Participation(tuple(ranges), len(history)) for member, ranges in found.items()}


def participation_in(provenance: Mapping[str, Any]) -> dict[str, Participation]:
    """Read the participation from a model's provenance; empty if it is missing or malformed.

    >>> participation_in({"participation": {"north": {"rounds": [[1, 3]], "of": 10}}})
    {'north': Participation(rounds=((1, 3),), of=10)}
    """
    said = provenance.get("participation")
    try:
        return {str(party): _read(facts) for party, facts in said.items()} if isinstance(said, Mapping) else {}
    except (TypeError, ValueError, LookupError):
        return {}


def _read(facts: Mapping[str, Any]) -> Participation:
    of, rounds, before = facts["of"], tuple((first, last) for first, last in facts["rounds"]), 0
    for number in (of, *(end for pair in rounds for end in pair)):
        if type(number) is not int:
            raise ValueError
    for first, last in rounds:
        if not before < first <= last <= of:
            raise ValueError
        before = last
    return Participation(rounds, of)


@dataclass(frozen=True)
class Communication:
    """The rounds of a run, and the bytes that were sent, after compression."""

    rounds: int
    bytes_down: int  # from the server to the parties
    bytes_up: int  # from the parties to the server
    by_party: Mapping[str, tuple[int, int]]  # party -> (down, up)

    @classmethod
    def of(cls, history: Sequence[Mapping[str, Any]]) -> Communication:
        """Add up a run's history (`model.history`).

        >>> Communication.of([{"bytes": {"north": [10, 3]}}, {"bytes": {"north": [5, 4], "south": [5, 4]}}])
        Communication(rounds=2, bytes_down=20, bytes_up=11, by_party={'north': (15, 7), 'south': (5, 4)})
        """
        by_party: dict[str, tuple[int, int]] = {}
        for facts in history:
            for party, (down, up) in facts["bytes"].items():
                before = by_party.get(party, (0, 0))
                by_party[party] = (before[0] + down, before[1] + up)
        down, up = (sum(pair[i] for pair in by_party.values()) for i in (0, 1))
        return cls(len(history), down, up, by_party)


def describe_participation(provenance: Mapping[str, Any]) -> str:
    """Describe how many parties trained a model, which were absent, and which missed rounds.

    >>> describe_participation({"parties": ["east", "south"], "absent": {"north": "refused (allow_clear)"}})
    '2 of 3 parties; north refused (allow_clear)'
    >>> known = {"north": {"rounds": [[1, 3]], "of": 10}}
    >>> describe_participation({"parties": ["east", "north"], "participation": known})
    '2 parties; north in rounds 1-3 of 10'
    """
    known, absent = participation_in(provenance), provenance.get("absent") or {}
    missed = describe_missed({party: one for party, one in known.items() if party not in absent})
    return "; ".join(part for part in (describe_answers(provenance), missed) if part)


def describe_answers(provenance: Mapping[str, Any]) -> str:
    """Describe how many parties trained a model, and which were absent."""
    here, absent = provenance.get("parties") or (), provenance.get("absent") or {}
    if not absent:
        return f"{len(here)} {'party' if len(here) == 1 else 'parties'}" if here else ""
    said = ", ".join(f"{party} {why}" for party, why in absent.items())
    return f"{len(here)} of {len(here) + len(absent)} parties; {said}"


def describe_missed(known: Mapping[str, Participation]) -> str:
    """List the parties that missed rounds, each with the rounds in which it took part; empty if no party missed any.

    >>> describe_missed({"north": Participation(((1, 3),), 10), "south": Participation(((1, 10),), 10)})
    'north in rounds 1-3 of 10'
    """
    some = [(party, one) for party, one in known.items() if not one.is_complete]
    said = [f"{party} in {one}" if one.rounds else f"{party} in none of {one.of} rounds" for party, one in some]
    more = [f"{len(said) - _NAMED} more parties missed rounds"] if len(said) > _NAMED else []
    return ", ".join(said[:_NAMED] + more)


def missed_warning(provenance: Mapping[str, Any]) -> str:
    """Word the warning about parties that missed more than a tenth of the rounds; empty if there are none."""
    absent = provenance.get("absent") or {}
    many = {p: one for p, one in participation_in(provenance).items() if one.missed_many and p not in absent}
    return f"{describe_missed(many)}: {KNOWS_LESS}" if many else ""
