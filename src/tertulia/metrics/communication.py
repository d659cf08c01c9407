"""What a run cost in communication: rounds, and bytes as they travelled, packed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Communication:
    """Rounds and bytes of a run."""

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
