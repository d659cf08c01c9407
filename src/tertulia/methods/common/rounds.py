"""The rounds of a method: what happens around each of them is written here, once.

A method gives a function of one round. After it come callbacks, in their order: `evaluation.Evaluation` scores the
model; a method may have others of its own. Then the round is committed, which makes it durable and shows its metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from tertulia.federation.types import Federation
from tertulia.methods.common.settings import Rounds

Metrics = dict[str, Any]


class Counted(Protocol):
    """A state that knows how many rounds are done."""

    @property
    def round(self) -> int:
        """The number of rounds so far."""


S = TypeVar("S")
C = TypeVar("C", bound=Counted)
OneRound = Callable[[S], tuple[S, Metrics]]
Callback = Callable[[Federation, S], tuple[S, Metrics]]


def run_until(
    fed: Federation,
    finished: Callable[[S], bool],
    state: S,
    one_round: OneRound[S],
    callbacks: Sequence[Callback[S]] = (),
    *,
    durable: int = 1,
) -> S:
    """Go on from a state, round by round, until it is finished; every `durable` rounds the state is kept on disk."""
    while not finished(state):
        state, metrics = one_round(state)
        for callback in callbacks:
            state, more = callback(fed, state)
            metrics |= more
        state = fed.commit(state, durable=durable, **metrics)
    return state


def run_rounds(
    fed: Federation, config: Rounds, state: C, one_round: OneRound[C], callbacks: Sequence[Callback[C]] = ()
) -> C:
    """The same for as many rounds as the settings say."""
    return run_until(fed, lambda state: state.round >= config.rounds, state, one_round, callbacks)
