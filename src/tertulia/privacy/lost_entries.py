"""Accepted losses: entries of a ledger that other members of a federation know of, and that no backup has.

The party's owner accepts a loss by a command, which writes an entry into the chain. No charge comes back by it: each
total of such a ledger says that the cost of the lost entries is not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tertulia.errors import FormatError
from tertulia.privacy.chain import LOST

_DAMAGED = "an entry of a loss is damaged ({}): restore the ledger from a backup"


class Missing(NamedTuple):
    """One thing that members hold and this ledger has not."""

    entry: int | None  # its number; None: it was made with another noise key
    holders: tuple[str, ...]  # the members that hold it

    @property
    def text(self) -> str:
        """Say what is missing."""
        who = f"{', '.join(self.holders)} {'holds' if len(self.holders) == 1 else 'hold'}"
        if self.entry is None:
            return f"{who} heads that were made with another noise key"
        return f"{who} the head of entry {self.entry:,}, which this ledger does not have"

    def to_data(self) -> dict[str, Any]:
        """Convert to plain data."""
        return {"entry": self.entry, "holders": list(self.holders)}

    @classmethod
    def from_data(cls, found: Any) -> Missing:
        """Read what `to_data` wrote."""
        entry = found["entry"]
        return cls(None if entry is None else int(entry), tuple(map(str, found["holders"])))


@dataclass(frozen=True)
class LostEntries:
    """A loss that the party's owner has accepted."""

    missing: tuple[Missing, ...]
    hash: str  # of the entry that records it
    time: str

    @property
    def of_another_home(self) -> bool:
        """Whether key and ledger were lost together, so that this home is another one."""
        return any(one.entry is None for one in self.missing)

    @property
    def text(self) -> str:
        """Say what the totals of this ledger leave out."""
        numbers = [one.entry for one in self.missing if one.entry is not None]
        what = f"entries of this ledger, up to number {max(numbers):,}," if numbers else "an earlier ledger"
        return f"{what} {'were' if numbers else 'was'} lost, and their cost is not counted (accepted on {self.time})"


def body_of(missing: Iterable[Missing]) -> str:
    """Write the body of an entry."""
    return json.dumps({"lost": [one.to_data() for one in missing]})


def read_losses(rows: Iterable[tuple[str, str, str]]) -> tuple[LostEntries, ...]:
    """Read bodies, hashes and times of entries, in order; raise `FormatError` if one is none."""
    try:
        return tuple(
            LostEntries(tuple(map(Missing.from_data, json.loads(body)["lost"])), hash_, time)
            for body, hash_, time in rows
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FormatError(_DAMAGED.format(error)) from error


def entry_id(number: int) -> str:
    """Return the id of the entry of the loss with this number."""
    return f"{LOST}{number}"
