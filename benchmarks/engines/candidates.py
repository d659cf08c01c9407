"""Ways to add counts up that were tried against poisoned parties, and are not in the product: what they reached is why.

Each takes a table of all parties' numbers [n, ...], one field of their replies, or gives parties weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tertulia._arrays import F64
from tertulia.federation.server.handle import Handle
from tertulia.methods.consensus import method as consensus


def trimmed(values: F64) -> F64:
    """The mean without the largest and the smallest, for all."""
    return np.asarray(np.sort(values, axis=0)[1:-1].mean(axis=0) * len(values))


def median(values: F64) -> F64:
    """The median, for all."""
    return np.asarray(np.median(values, axis=0) * len(values))


def clipped(counts: F64) -> F64:
    """Nobody weighs more than the party of median size."""
    tokens = counts.sum(axis=(1, 2))
    return np.asarray(np.minimum(1.0, np.median(tokens) / tokens))


def geometric_median(counts: F64) -> F64:
    """The weights of Weiszfeld's algorithm, for the roots of shares of all tokens; and clipped."""
    roots, weights = _roots(counts), np.full(len(counts), 1.0 / len(counts))
    for _ in range(50):
        far = np.linalg.norm(roots - weights @ roots, axis=1)
        weights = 1.0 / np.maximum(far, 1e-9)
        weights /= weights.sum()
    return np.asarray(weights / weights.max() * clipped(counts))


def krum(counts: F64) -> F64:
    """All but the one that is farthest from its nearest others (multi-Krum for one liar); and clipped."""
    roots = _roots(counts)
    far = np.linalg.norm(roots[:, None] - roots[None], axis=2)
    nearest = np.sort(far, axis=1)[:, 1 : len(counts) - 2].sum(axis=1)
    return np.asarray((np.arange(len(counts)) != nearest.argmax()) * clipped(counts))


def _roots(counts: F64) -> F64:
    """Shares of a party's tokens, by their roots: Hellinger's distance."""
    return np.array([np.sqrt(table.ravel() / table.sum()) for table in counts])


COORDINATES: dict[str, Callable[[F64], F64]] = {"trimmed": trimmed, "median": median}
WEIGHTS: dict[str, Callable[[F64], F64]] = {
    "clipped": clipped,
    "geometric median": geometric_median,
    "krum": krum,
}


class CandidateHandle(Handle):
    """The server's side of the federation, with another way to add counts up."""

    candidate = ""

    def sum(self, step: Any, message: Any) -> Any:
        """As before, but for counts."""
        if step is not consensus.count_together or not self.candidate:
            return super().sum(step, message)
        return add_up(self.candidate, self._ask_quorum("sum", step, message))


def add_up(candidate: str, replies: Sequence[Any]) -> Any:
    """The replies' total, as the candidate has it."""
    names = [field.name for field in dataclasses.fields(replies[0])]
    tables = {name: np.array([getattr(reply, name) for reply in replies], dtype=np.float64) for name in names}
    if candidate in COORDINATES:
        totals = {name: COORDINATES[candidate](table) for name, table in tables.items()}
    else:
        weights = WEIGHTS[candidate](tables["counts"])
        totals = {name: np.tensordot(weights, table, 1) for name, table in tables.items()}
    return dataclasses.replace(replies[0], **{name: np.rint(total).astype(np.int64) for name, total in totals.items()})
