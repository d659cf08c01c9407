"""Attempts at a step of several questions that must all be about the same documents.

Shared statistics and the gradient that is taken through them belong together only if the same parties' batches are in
both. So one set of parties takes a step: those that answered its first question. If one of them drops out later (it is
late, or it died), the others begin the step again; each time they are fewer, and a quorum is needed. The party that
dropped out is asked again in the next step. Under secure sums each attempt takes another mini-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tertulia.federation.types import Federation, PartyId, Step

_T = TypeVar("_T")


class _DroppedOut(Exception):
    """A party that had answered the step's first question did not answer a later one."""


class Attempt:
    """One attempt at a step: asks the same parties every time."""

    def __init__(self, fed: Federation, parties: Sequence[PartyId], number: int) -> None:
        self._fed = fed
        self._begun = False
        self.parties = list(parties)
        self.number = number  # parties check that a question and what they hold are of the same attempt
        self.secure = fed.secure

    def sum(self, step: Step, message: Any) -> Any:
        """Sum the replies of all these parties."""
        return self._check_all(self._fed.sum(step, dict.fromkeys(self.parties, message)))

    def mean(self, step: Step, message: Any) -> Any:
        """Average the replies of all these parties."""
        return self._check_all(self._fed.mean(step, dict.fromkeys(self.parties, message)))

    def _check_all(self, combined: Any) -> Any:
        before, self.parties = self.parties, list(self._fed.answered)
        if self._begun and len(self.parties) < len(before):
            raise _DroppedOut
        self._begun = True
        return combined


def with_one_set(fed: Federation, last: int, step: Callable[[Attempt], _T]) -> tuple[_T, int]:
    """Take a step with one set of parties; also return the attempt's number. `last` is that of the step before."""
    attempt = Attempt(fed, fed.parties, last + 1)
    while True:  # until all answer, or the quorum is missed: there are fewer parties each time
        try:
            return step(attempt), attempt.number
        except _DroppedOut:
            attempt = Attempt(fed, attempt.parties, attempt.number + 1)
