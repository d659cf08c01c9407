"""Splits of rows into parties, and of documents into training and held-out ones.

Every rule is a pure function of a row and a seed, by a hash. So each party's process can stream the same files and
keep its own rows, and a row stays at its party when others are added.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from tertulia.errors import InputError


class Row(NamedTuple):
    """One row of the input, before it becomes a document."""

    id: str
    text: str
    label: str | None = None
    date: str | None = None
    source: str = ""  # the file name without suffixes; for a folder of texts, the first folder inside it
    values: Mapping[str, str | None] = {}  # the columns that a rule or a `where` needs
    user: str | None = None
    tokens: Sequence[str] | None = None  # of a document that is already cut into words


@dataclass(frozen=True)
class Assignment:
    """A rule that names each row's party: call it with a `Row`.

    `parties` are the names of the parties, or empty if only the data have them.
    """

    rule: Callable[[Row], str]
    parties: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # that the rule reads from `Row.values`
    needs_label: bool = False

    def __call__(self, row: Row) -> str:
        """Name the party that holds this row."""
        return self.rule(row)


def unit_interval(*parts: object) -> float:
    """Hash the parts to a number in [0, 1) that looks random, and is the same for the same parts."""
    joined = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "big") / 2**64


def is_heldout(name: str, share: float, seed: int = 0) -> bool:
    """Return whether the document with this id is held out, for a given share of held-out documents."""
    if not 0 <= share <= 1:
        raise InputError(f"heldout = {share} must be a share between 0 and 1")
    return place_in_split(name, seed) < share


def place_in_split(name: str, seed: int = 0) -> float:
    """Return a number in [0, 1) for a document of this id: it is held out if the share is larger."""
    return unit_interval("heldout", seed, name)


def by_column(column: str) -> Assignment:
    """Make a party of each value of a column; rows without a value go to the party 'none'."""
    return Assignment(lambda row: row.values.get(column) or "none", columns=(column,))


def by_file() -> Assignment:
    """Make a party of each file (for a folder of texts: of each of its sub-folders)."""
    return Assignment(lambda row: row.source)


def at_random(sizes: Mapping[str, float], seed: int = 0) -> Assignment:
    """Make parties of the given relative sizes.

    >>> assign = at_random({"north": 1, "south": 3})
    >>> sum(assign(Row(str(i), "")) == "south" for i in range(1000)) / 1000
    0.737
    """
    bounds = _bounds(_shares(sizes))
    names = tuple(sizes)
    return Assignment(lambda row: names[_pick(bounds, unit_interval("party", seed, row.id))], parties=names)


def in_shards(shards: int, seed: int = 0) -> Assignment:
    """Make `shards` parties of about equal size, 'shard-01' and so on; a user's documents stay together.

    >>> in_shards(16).parties[:2]
    ('shard-01', 'shard-02')
    """
    digits = max(2, len(str(shards)))
    names = tuple(f"shard-{i + 1:0{digits}d}" for i in range(shards))

    def rule(row: Row) -> str:
        whose = ("id", row.id) if row.user is None else ("user", row.user)
        return names[int(unit_interval("shard", seed, *whose) * shards)]

    return Assignment(rule, parties=names)


def dirichlet(parties: Sequence[str], concentration: float, seed: int = 0) -> Assignment:
    """Make parties with different labels: each label is spread over the parties by its own Dirichlet draw.

    With a small concentration a label belongs to few parties; a large one gives equal shares.
    """
    if not parties or concentration <= 0:
        raise InputError(f"a Dirichlet split needs parties and a concentration above 0, not {concentration}")
    names = tuple(parties)

    @cache
    def bounds(label: str) -> list[float]:
        return _bounds(dirichlet_shares(len(names), concentration, f"{seed}\x1f{label}"))

    def rule(row: Row) -> str:
        return names[_pick(bounds(row.label or ""), unit_interval("party", seed, row.id))]

    return Assignment(rule, parties=names, needs_label=True)


def dirichlet_shares(n: int, concentration: float, key: str) -> list[float]:
    """Draw from a symmetric Dirichlet, as a pure function of the key, by stick breaking with hashed quantiles."""
    from scipy.special import betaincinv

    shares, rest = [], 1.0
    for i in range(n - 1):
        # Given the shares before it, share i of the rest is Beta(a, a * (number of parties after it)).
        part = float(betaincinv(concentration, concentration * (n - 1 - i), unit_interval("stick", key, i)))
        shares.append(rest * part)
        rest *= 1.0 - part
    return [*shares, rest]


def _shares(sizes: Mapping[str, float]) -> list[float]:
    if not sizes or any(size <= 0 for size in sizes.values()):
        raise InputError(f"party sizes must all be above 0, got {dict(sizes)}")
    total = sum(sizes.values())
    return [size / total for size in sizes.values()]


def _bounds(shares: Sequence[float]) -> list[float]:
    return list(accumulate(shares))[:-1]  # the last party takes the rest, so rounding does not matter


def _pick(bounds: list[float], at: float) -> int:
    return bisect_right(bounds, at)
