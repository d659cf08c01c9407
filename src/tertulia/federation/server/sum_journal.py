"""The server's journal of masked sums: the list and the masked total of each place, and the seeds that unmask it.

The list and the total of the masked replies are on disk before the list is shown to anybody, and the seeds before the
total is used. So a run that resumes or rolls back reads its totals here, and asks for no place a second time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tertulia._arrays import Array
from tertulia._disk import atomic_write, read_checked, with_checksum
from tertulia.errors import FormatError
from tertulia.federation import faults
from tertulia.federation.codec import decode, encode
from tertulia.federation.secure.keys import Card
from tertulia.federation.types import Place, message

_HEADS = "heads"


@message
class MaskedSum:
    """A masked sum whose list is fixed."""

    step: str
    kind: str  # the name of the replies' class
    question: str  # the hash of the body that was asked
    body: str  # the hash of question and widths
    attempt: int
    survivors: dict[str, str]  # member -> digest of its reply
    masked: tuple[Array, ...]  # flat totals of the masked fields; the first are the cells of zeros
    shapes: tuple[Any, ...]
    commitments: Array  # [survivors, n, 32]
    boxes: Array  # [survivors, n, b]


@message
class Seeds:
    """The seeds that unmask a sum."""

    of_selves: Array  # [survivors, 16]
    of_pairs: Array  # [survivors, absent, 16]


class SumJournal:
    """The masked sums of one run, two files for each place, and the members' cards."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        self._directory, self._durable = directory, durable

    def cards_or_none(self) -> tuple[Card, ...] | None:
        """Return the members' cards, if they have agreed on keys."""
        path = self._directory / "cards.safetensors"
        cards: tuple[Card, ...] | None = decode(read_checked(path)) if path.exists() else None
        return cards

    def keep_cards(self, cards: tuple[Card, ...]) -> None:
        """Store the members' cards, once all have the members' key."""
        self._write("cards.safetensors", cards)

    @property
    def has_heads(self) -> bool:
        """Whether all members have shown each other the heads of their ledgers."""
        return (self._directory / _HEADS).exists()

    def note_heads(self) -> None:
        """Store that all members have done so."""
        if not self.has_heads:
            self._directory.mkdir(parents=True, exist_ok=True)
            atomic_write(self._directory / _HEADS, b"", durable=self._durable)

    def find_or_none(self, place: Place) -> tuple[MaskedSum, Seeds | None] | None:
        """Return the sum at a place, and its seeds if it was unmasked."""
        path = self._directory / f"{_name(place)}.list"
        if not path.exists():
            return None
        found, seeds = decode(read_checked(path)), None
        if (unmasked := path.with_suffix(".seeds")).exists():
            seeds = decode(read_checked(unmasked))
        if not isinstance(found, MaskedSum) or not isinstance(seeds, Seeds | None):
            raise FormatError(f"{path} is no masked sum: restore it from a backup")
        return found, seeds

    def keep_list(self, place: Place, found: MaskedSum) -> None:
        """Store a list with its masked total."""
        faults.point("server.before_list")
        self._write(f"{_name(place)}.list", found)
        faults.point("server.after_list")

    def keep_seeds(self, place: Place, seeds: Seeds) -> None:
        """Store the seeds that unmask a total."""
        self._write(f"{_name(place)}.seeds", seeds)
        faults.point("server.after_seeds")

    def forget_before(self, round_: int) -> None:
        """Remove the sums of earlier rounds, which a durable commit holds."""
        for path in self._directory.glob("*.list"):
            if int(path.stem.split("-")[0]) < round_:
                path.unlink()
                path.with_suffix(".seeds").unlink(missing_ok=True)

    def _write(self, name: str, value: Any) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        atomic_write(self._directory / name, with_checksum(encode(value)), durable=self._durable)


def _name(place: Place) -> str:
    return f"{place[0]:08d}-{place[1]:06d}"
