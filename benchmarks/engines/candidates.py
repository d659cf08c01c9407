"""Robust sums that were tried against poisoned parties. Their results were not good enough for the product.

Each takes one field of all parties' replies, an array [n, ...], or computes weights of the parties.
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
    """Return the mean without the largest and the smallest value, times the number of parties."""
    return np.asarray(np.sort(values, axis=0)[1:-1].mean(axis=0) * len(values))


def median(values: F64) -> F64:
    """Return the median, times the number of parties."""
    return np.asarray(np.median(values, axis=0) * len(values))


def clipped(counts: F64) -> F64:
    """Limit each party's weight to that of the party of median size."""
    tokens = counts.sum(axis=(1, 2))
    return np.asarray(np.minimum(1.0, np.median(tokens) / tokens))


def geometric_median(counts: F64) -> F64:
    """Weight parties by Weiszfeld's algorithm on the square roots of their shares of tokens, then clip."""
    roots, weights = _roots(counts), np.full(len(counts), 1.0 / len(counts))
    for _ in range(50):
        far = np.linalg.norm(roots - weights @ roots, axis=1)
        weights = 1.0 / np.maximum(far, 1e-9)
        weights /= weights.sum()
    return np.asarray(weights / weights.max() * clipped(counts))


def krum(counts: F64) -> F64:
    """Leave out the party that is farthest from its nearest others (multi-Krum for one liar), then clip."""
    roots = _roots(counts)
    far = np.linalg.norm(roots[:, None] - roots[None], axis=2)
    nearest = np.sort(far, axis=1)[:, 1 : len(counts) - 2].sum(axis=1)
    return np.asarray((np.arange(len(counts)) != nearest.argmax()) * clipped(counts))


def _roots(counts: F64) -> F64:
    """Return the square roots of a party's shares of tokens, for Hellinger distances."""
    return np.array([np.sqrt(table.ravel() / table.sum()) for table in counts])


COORDINATES: dict[str, Callable[[F64], F64]] = {"trimmed": trimmed, "median": median}
WEIGHTS: dict[str, Callable[[F64], F64]] = {
    "clipped": clipped,
    "geometric median": geometric_median,
    "krum": krum,
}


class CandidateHandle(Handle):
    """A handle with another way to add up counts."""

    candidate = ""
    total: Any = None  # of the last round

    def sum(self, step: Any, message: Any) -> Any:
        """Add up replies; parties send whole counts, and the method gets the change of their total."""
        if step is not consensus.count_together or not self.candidate:
            return super().sum(step, message)
        whole = dataclasses.replace(message, singly=True)
        last, self.total = self.total, add_up(self.candidate, self._ask_quorum("sum", step, whole))
        if last is None:
            return self.total
        change = {name: value - getattr(last, name) for name, value in vars(self.total).items() if name != "added"}
        added = self.total.added - message.training.sweeps * last.counts if message.adds_up else self.total.added
        return dataclasses.replace(self.total, added=added, **change)


def add_up(candidate: str, replies: Sequence[Any]) -> Any:
    """Add up the replies as the candidate does."""
    names = [field.name for field in dataclasses.fields(replies[0])]
    tables = {name: np.array([getattr(reply, name) for reply in replies], dtype=np.float64) for name in names}
    if candidate in COORDINATES:
        totals = {name: COORDINATES[candidate](table) for name, table in tables.items()}
    else:
        weights = WEIGHTS[candidate](tables["counts"])
        totals = {name: np.tensordot(weights, table, 1) for name, table in tables.items()}
    return dataclasses.replace(replies[0], **{name: np.rint(total).astype(np.int64) for name, total in totals.items()})
